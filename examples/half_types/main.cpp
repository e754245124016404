// Trains one network three times, in Float32 and in autocast scopes of BFloat16 and Float16, from the same start on the
// same batches, and says how far the half types end from Float32.
//   half_types lenet data=FOLDER [epochs=5] [images=60000]     Fashion-MNIST or MNIST; test accuracy, within 0.3 %
//   half_types gpt data=FILE [steps=2000]                      a text; loss on its last tenth, within 0.02
// Further keys: batch, rate, device, limit; of gpt: length, layers, width, heads. Exit status 1: further apart.
#include <rosin/rosin.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../models/gpt2.hpp"
#include "../models/measure.hpp"

namespace {

using namespace rosin;

/// A step in the type's scope; f(model) is its loss.
template <class M, class F> void take_step(State& state, M& model, DType type, F&& f) {
  const auto scaled = [&](const M& m) {
    const Autocast scope = models::scope_of(type);
    return scaled_loss(state, f(m));
  };
  update(state, model, gradient(scaled, model));
}

Chain lenet() {
  return Chain(Conv({5, 5}, 1, 6, relu, {.pad = 2}), MaxPool({2, 2}), Conv({5, 5}, 6, 16, relu), MaxPool({2, 2}),
               flatten, Dense(400, 120, relu), Dense(120, 84, relu), Dense(84, 10));
}

/// The share of right answers, in percent.
double accuracy(const Chain& model, const ImageArrays& test, DType type, const Device& device) {
  double right = 0;
  for (const auto& [x, y] : DataLoader(std::pair(test.images, test.labels), {.batchsize = 500}) | device) {
    const Autocast scope = models::scope_of(type);
    right += static_cast<double>(sum(squeeze(argmax(model(x), 0), 0) == y).item<int64_t>());
  }
  return 100 * right / static_cast<double>(test.labels.count());
}

double train_lenet(const ImageFolder& folder, models::Words words, DType type) {
  const int64_t epochs = words.count("epochs", 5), batch = words.count("batch", 64);
  const double rate = words.number("rate", 1e-3);
  const Device device = words.device();
  ImageArrays train = image_arrays(folder.train);
  const int64_t images = std::min(words.count("images", 60000), train.labels.count());
  words.finish();
  train = {slice(train.images, 3, 0, images), slice(train.labels, 0, 0, images)};
  seed(1);
  Chain model = lenet() | device;
  State state = models::state_for(type, Adam{.eta = rate}, model);
  const CosineRate schedule{.start = rate, .end = 0, .steps = epochs * ((images + batch - 1) / batch)};
  auto loader = DataLoader(std::pair(train.images, train.labels), {.batchsize = batch, .shuffle = true}) | device;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const auto& [x, y] : loader) {
      adjust(state, schedule(step++));
      take_step(state, model, type, [&](const Chain& m) { return labelcrossentropy(m(x), y); });
    }
  }
  return accuracy(model, image_arrays(folder.test), type, device);
}

/// Windows of a text as tokens (length, batch), and what follows each.
std::pair<Array, Array> windows(const Array& text, int64_t length, const Array& starts) {
  const Array places = reshape(arange(length), {length, 1}) + reshape(starts, {1, starts.count()});
  return {gather(text, places, 0), gather(text, places + 1, 0)};
}

double train_gpt(const std::string& text, models::Words words, DType type) {
  const int64_t steps = words.count("steps", 2000), batch = words.count("batch", 16),
                length = words.count("length", 64);
  const double rate = words.number("rate", 1e-3);
  const Device device = words.device();
  const CharTokenizer tokenizer(text);
  models::GPT2Options options{.positions = length, .dropout = 0};
  options.layers = words.count("layers", 3);
  options.width = words.count("width", 96);
  options.heads = words.count("heads", 3);
  words.finish();
  options.vocabulary = tokenizer.vocab_size();
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const Array all = Array(std::span<const int32_t>(ids), {static_cast<int64_t>(ids.size())});
  const int64_t cut = all.count() / 10 * 9;
  seed(1);
  models::GPT2LMHead model = models::gpt2(options) | device;
  State state = models::state_for(type, AdamW{.eta = rate, .lambda = 0.1}, model);
  const auto schedule = warmup(steps / 20, CosineRate{.start = rate, .end = 0, .steps = steps - steps / 20});
  for (int64_t step = 0; step < steps; ++step) {
    const auto [x, y] = windows(all, length, randint(0, cut - length, {batch})) | device;
    adjust(state, schedule(step));
    take_step(state, model, type, [&](const models::GPT2LMHead& m) { return labelcrossentropy(m(x), y); });
  }
  double sum = 0;
  constexpr int64_t parts = 20;
  const int64_t each = (all.count() - cut - length - 1) / (parts * 16);
  for (int64_t part = 0; part < parts; ++part) {
    const Array starts = cut + (arange(16) + 16 * part) * each;
    const auto [x, y] = windows(all, length, starts) | device;
    const Autocast scope = models::scope_of(type);
    sum += labelcrossentropy(model(x), y).item();
  }
  return sum / static_cast<double>(parts);
}

/// Whether both half types end near enough.
template <class F> bool compare(const char* what, double limit, F&& result) {
  const double exact = result(Float32);
  std::printf("%s: Float32 %.4f\n", what, exact);
  bool near = true;
  for (const DType type : {BFloat16, Float16}) {
    const double half = result(type);
    std::printf("%s: %s %.4f, apart by %.4f\n", what, to_string(type), half, std::abs(half - exact));
    near = near && std::abs(half - exact) <= limit;
  }
  std::printf("within %g of Float32: %s\n", limit, near ? "yes" : "no");
  return near;
}

bool run(const std::string& task, models::Words words) {
  const std::string data = words.text("data");
  if (task == "lenet") {
    const ImageFolder folder = read_image_folder(data);
    return compare("accuracy", words.number("limit", 0.3),
                   [&](DType type) { return train_lenet(folder, words, type); });
  }
  if (task != "gpt") throw std::invalid_argument("half_types lenet|gpt data=...; got " + task);
  std::ifstream file(data, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + data);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return compare("loss", words.number("limit", 0.02), [&](DType type) { return train_gpt(text, words, type); });
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count > 1 ? words[1] : "nothing", models::Words(count - 1, words + 1)) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "half_types: %s\n", error.what());
    return 2;
  }
}
