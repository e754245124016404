// Trains a network on images and shows how well it does. Read first: models.hpp; options.cpp reads the command line.
// The last line is `test accuracy: 0.NNNN`. A wrong option or damaged data: one line on stderr and exit status 2.
#include <rosin/rosin.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "models.hpp"
#include "options.hpp"

namespace demo {
namespace {

using namespace rosin;

constexpr int64_t drawn_for_training = 20000;
constexpr int64_t drawn_for_test = 5000;

ImageFolder read_or_draw(const Options& options) {
  if (options.data.empty())
    return {draw_digits(drawn_for_training, options.seed), draw_digits(drawn_for_test, options.seed + 1)};
  ImageFolder folder = read_image_folder(options.data);
  if (folder.train.count == 0 || folder.test.count == 0)
    throw std::invalid_argument(options.data + ": there are no images");
  if (folder.train.rows != 28 || folder.train.columns != 28) {
    throw std::invalid_argument(options.data + ": the demo's networks take images of 28x28 pixels; these have " +
                                std::to_string(folder.train.rows) + "x" + std::to_string(folder.train.columns));
  }
  return folder;
}

/// Shifts and scales both halves so that the training pixels have mean 0 and deviation 1: both networks learn better.
void standardise(ImageArrays& train, ImageArrays& test) {
  const Array centre = mean(train.images), spread = max(stddev(train.images), 1e-6);
  train.images = (train.images - centre) / spread;
  test.images = (test.images - centre) / spread;
}

/// The share of images whose largest output is at their label.
template <class Model> double accuracy(const Model& model, const ImageArrays& data, const Device& device) {
  auto batches = DataLoader(std::tuple{data.images, data.labels}, {.batchsize = 500}) | device;
  int64_t right = 0;
  for (auto [x, label] : batches) right += sum(onecold(model(x)) == label).template item<int64_t>();
  return static_cast<double>(right) / static_cast<double>(data.labels.count());
}

/// One pass over the training images; the mean loss.
template <class Model, class Loader>
double train_epoch(Model& model, State& state, Loader& loader, int64_t epoch, Progress& progress) {
  double total = 0;
  int64_t done = 0;
  for (auto [x, y] : loader) {
    auto [loss, grad] = withgradient([&](const Model& m) { return logitcrossentropy(m(x), y); }, model);
    update(state, model, grad);
    const int64_t images = x.size(-1);
    const double value = loss.item();
    total += value * static_cast<double>(images);
    done += images;
    progress.update(epoch, done, value);
  }
  return total / static_cast<double>(done);
}

template <class Model> void train_and_save(const Options& options, const ImageFolder& folder, const Device& device) {
  auto model = Model{} | device;
  auto state = setup(Adam{.eta = 1e-3}, model);
  ImageArrays train = image_arrays(folder.train), test = image_arrays(folder.test);
  standardise(train, test);
  auto loader = DataLoader(std::tuple{train.images, onehotbatch(train.labels, 10)},
                           {.batchsize = options.batchsize, .shuffle = true}) |
                device;
  std::vector<CurvePoint> curve;
  Progress progress(options.epochs, folder.train.count, stdout);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const double loss = train_epoch(model, state, loader, epoch, progress);
    const double share = accuracy(model, test, device);
    progress.finish_epoch(epoch, loss, share);
    curve.push_back({static_cast<double>(epoch + 1), loss, share});
  }
  if (options.save != "none") {
    save(options.save, model);
    save_curve_svg("training.svg", curve,
                   options.model + " on " + (options.data.empty() ? "drawn digits" : options.data));
    std::printf("saved %s and training.svg\n", options.save.c_str());
  }
  std::printf("test accuracy: %.4f\n", curve.back().accuracy);
}

void run(const Options& options) {
  const Device device = options.device.empty() ? get_device() : get_device(options.device, options.device_id);
  seed(options.seed);
  const ImageFolder folder = read_or_draw(options);
  std::cout << "device: " << device << "\ndata: " << folder.train.count << " images to train on, " << folder.test.count
            << " to test" << std::endl;
  if (options.model == "mlp") train_and_save<MLP>(options, folder, device);
  else train_and_save<LeNet>(options, folder, device);
}

}  // namespace
}  // namespace demo

int main(int count, char** arguments) {
  try {
    const demo::Options options = demo::parse_options(count, arguments);
    if (options.help) std::fputs(demo::help_text, stdout);
    else demo::run(options);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "demo: " << error.what() << std::endl;
    return 2;
  }
}
