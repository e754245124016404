// Trains ResNet-50 (or 18) as its recipes have it: bf16 products beside Float32 parameters and statistics, smoothed
// labels, momentum with weight decay, warm-up and cosine. Images are those of a folder in the format of MNIST
// (data=FOLDER), or patterns drawn for each class, enough to time it and to see it learn.
//   train_resnet [data=FOLDER] [depth=50] [steps=100] [batch=256] [image=224] [classes=1000] [type=bf16] ...
// Keys: data, depth, blocks (of each stage; 0: as published), steps, batch, image, classes, rate, warmup, smoothing,
// decay, type (bf16, f16, f32), device, peak (of the device, TFLOP/s), json (a file), weights, save, seed.
#include <rosin/rosin.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "../models/measure.hpp"
#include "../models/resnet.hpp"

namespace {

using namespace rosin;

/// Images (size, size, 3, n) and labels (n).
class Images {
 public:
  Images(const std::string& folder, int64_t size, int64_t classes) : size_(size), classes_(classes) {
    if (folder.empty()) {
      patterns_ = randn({8, 8, 3, classes});
      return;
    }
    const auto [images, labels] = image_arrays(read_image_folder(folder).train);
    images_ = images;
    labels_ = labels;
  }

  std::pair<Array, Array> next(int64_t batch) {
    if (images_.is_nothing()) {
      const Array labels = randint(0, classes_, {batch}), noise = 0.5 * randn({size_, size_, 3, batch});
      return {fitted(gather(patterns_, labels, 3)) + noise, labels};
    }
    const Array chosen = randint(0, labels_.count(), {batch});
    return {fitted(gather(images_, chosen, 3)), gather(labels_, chosen, 0)};
  }

 private:
  /// In the network's size, of three planes.
  Array fitted(const Array& x) const {
    const Array planes = x.size(2) == 3 ? x : concat({x, x, x}, 2);
    return Upsample(UpsampleMode::bilinear, {.size = size_})(planes);
  }

  int64_t size_, classes_;
  Array patterns_, images_, labels_;
};

/// Multiplications and additions for one image, forward: two for each weight of a convolution and place of its result.
double flops_of_image(const models::ResNet& model, int64_t image) {
  double sum = 0;
  for (const NamedArray& entry : state(model)) {
    if (entry.value.rank() != 4) continue;
    const std::string& name = entry.name;
    int64_t shrunk = 2;  // conv1
    if (name.starts_with("layer")) {
      shrunk = int64_t{2} << (name[5] - '0');
      const bool first = name.find(".0.conv1") != std::string::npos && entry.value.size(0) == 1;
      if (first && name[5] > '1') shrunk /= 2;  // a bottleneck's stride is that of its second convolution
    }
    const auto side = static_cast<double>((image + shrunk - 1) / shrunk);
    sum += 2 * side * side * static_cast<double>(entry.value.count());
  }
  return sum + 2 * static_cast<double>(model.fc.weight.count());
}

void train_resnet(models::Words& words) {
  const int64_t depth = words.count("depth", 50), blocks = words.count("blocks", 0);
  const int64_t steps = words.count("steps", 100), batch = words.count("batch", 256);
  const int64_t image = words.count("image", 224), classes = words.count("classes", 1000);
  const double rate = words.number("rate", 0.1 * static_cast<double>(batch) / 256);
  const double smoothing = words.number("smoothing", 0.1), decay = words.number("decay", 5e-5);
  const int64_t rising = words.count("warmup", steps / 20), falling = std::max<int64_t>(steps - rising, 1);
  const auto schedule = warmup(rising, CosineRate{.start = rate, .end = 0, .steps = falling});
  const double peak = 1e12 * words.number("peak", 0);
  const DType type = words.type();
  const Device device = words.device();
  seed(static_cast<uint64_t>(words.count("seed", 1)));
  Images data(words.text("data"), image, classes);
  const std::string json = words.text("json"), weights = words.text("weights"), result = words.text("save");
  words.finish();

  const std::array<int64_t, 4> few = {blocks, blocks, blocks, blocks};
  models::ResNet model = depth == 18 ? (blocks ? models::resnet18(classes, few) : models::resnet18(classes))
                                     : (blocks ? models::resnet50(classes, few) : models::resnet50(classes));
  if (!weights.empty()) load(weights, model, {.names = torch});
  model = model | device;
  const OptimiserChain rule(WeightDecay{decay}, Momentum{.eta = rate, .rho = 0.9});
  State state = models::state_for(type, rule, model);
  std::printf("%lld parameters, %lld images a step, %s\n", static_cast<long long>(parameter_count(model)),
              static_cast<long long>(batch), to_string(type));
  const auto images = static_cast<double>(batch);
  models::Measure measure({"images", images, 3 * images * flops_of_image(model, image), peak}, json);
  double right = 0;
  for (int64_t step = 0; step < steps; ++step) {
    adjust(state, Adjustment{.eta = schedule(step)});
    const auto [x, y] = data.next(batch) | device;
    Array scores;
    const auto scaled = [&](const models::ResNet& m) {
      const Autocast scope = models::scope_of(type);
      scores = m(x);
      const Array loss = labelcrossentropy(scores, y, {.smoothing = smoothing});
      return std::pair(scaled_loss(state, loss), loss);
    };
    const auto [losses, grad] = withgradient(scaled, model);
    update(state, model, grad);
    measure.step(step, losses.second, schedule(step));
    right = mean(squeeze(argmax(scores, 0), 0) == y).item();
  }
  std::printf("right in the last batch: %.1f %%\n", 100 * right);
  if (type == Float16) std::printf("skipped steps: %lld\n", static_cast<long long>(loss_scale(state).skipped));
  if (!result.empty()) save(result, model, {.names = torch});
}

}  // namespace

int main(int count, char** words) { return models::run("train_resnet", train_resnet, count, words); }
