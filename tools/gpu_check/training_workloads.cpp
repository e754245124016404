// Training steps: forward, backward and the optimiser's rule, as a user writes them. Arrays are made in an order that
// peer_torch.py and peer_jax.py follow. Read first: workloads.hpp.
#include <rosin/rosin.hpp>

#include <cmath>
#include <functional>

#include "workloads.hpp"

namespace gpu_check {
namespace {

using namespace rosin;

/// Weights as wide as suits what they read.
Array weight(Numbers& numbers, const Shape& shape, int64_t inputs) {
  return numbers.uniform(shape, 1 / std::sqrt(static_cast<double>(inputs)));
}

Dense dense(Numbers& numbers, int64_t in, int64_t out, const Activation& act = {}) {
  const Array w = weight(numbers, {out, in}, in);
  return {w, zeros({out}), act};
}

/// A model on its device with an optimiser's rule, and the loss of one batch.
template <class Model, class Rule> class Training : public Session {
 public:
  using Loss = std::function<Array(const Model&)>;
  Training(const Model& model, const Rule& rule, Loss loss)
      : model_(model), state_(setup(rule, model_)), loss_(std::move(loss)) {}

  void step() override {
    auto [loss, grad] = withgradient([&](const Model& m) { return loss_(m); }, model_);
    update(state_, model_, grad);
    last_ = loss;
  }
  double value() override { return cast(last_, Float32).item(); }

 private:
  Model model_;
  State state_;
  Loss loss_;
  Array last_;
};

/// The model in Float32, or in BFloat16 with the rule on a copy in Float32 (half=1).
template <class Model, class Rule>
std::unique_ptr<Session> trained(const Model& model, const Rule& rule, const Sizes& sizes, const Device& device,
                                 std::function<Array(const Model&)> loss) {
  if (sizes.get("half", 0) == 0) {
    return std::make_unique<Training<Model, Rule>>(model | device, rule, std::move(loss));
  }
  return std::make_unique<Training<Model, MixedPrecision<Rule>>>(bf16(model) | device, MixedPrecision(rule),
                                                                 std::move(loss));
}

/// Data in the type of the model.
Array data(const Array& x, const Sizes& sizes, const Device& device) {
  return (sizes.get("half", 0) ? cast(x, BFloat16) : x) | device;
}

Array error_of(const Array& logits, const Array& labels) { return labelcrossentropy(cast(logits, Float32), labels); }

// --- The MLP.

struct MLP {
  Dense hidden, out;
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

std::unique_ptr<Session> mlp(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t batch = sizes["batch"], inputs = sizes["inputs"], hidden = sizes["hidden"], classes = sizes["classes"];
  const Array x = data(numbers.uniform({inputs, batch}, 1), sizes, device);
  const Array y = numbers.whole({batch}, classes) | device;
  const Dense first = dense(numbers, inputs, hidden, relu);
  const MLP model{first, dense(numbers, hidden, classes)};
  return trained<MLP>(model, Adam{.eta = 1e-3}, sizes, device, [=](const MLP& m) { return error_of(m(x), y); });
}

// --- LeNet-5.

struct LeNet {
  CrossCor first, second;
  Dense wide, narrow, out;
  Array operator()(const Array& x) const {
    const Array parts = maxpool(second(maxpool(first(x), 2)), 2);
    return out(narrow(wide(flatten(parts))));
  }
};

CrossCor filter(Numbers& numbers, int64_t side, int64_t in, int64_t out, const Activation& act,
                const ConvLayerOptions& options) {
  const Array w = weight(numbers, {side, side, in, out}, side * side * in);
  return {w, options.bias, act, options};
}

std::unique_ptr<Session> lenet(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t batch = sizes["batch"], image = sizes["image"], side = ((image - 4) / 2 - 4) / 2;
  const Array x = data(numbers.uniform({image, image, 1, batch}, 1), sizes, device);
  const Array y = numbers.whole({batch}, 10) | device;
  LeNet model;
  model.first = filter(numbers, 5, 1, 6, relu, {.bias = zeros({6})});
  model.second = filter(numbers, 5, 6, 16, relu, {.bias = zeros({16})});
  model.wide = dense(numbers, 16 * side * side, 120, relu);
  model.narrow = dense(numbers, 120, 84, relu);
  model.out = dense(numbers, 84, 10);
  return trained<LeNet>(model, Adam{.eta = 1e-3}, sizes, device, [=](const LeNet& m) { return error_of(m(x), y); });
}

// --- ResNet: He and others, "Deep residual learning for image recognition" (2015).

struct Unit {
  CrossCor conv;
  BatchNorm norm;
  Array operator()(const Array& x) const { return norm(conv(x)); }
};

struct Block {
  std::vector<Unit> units;   // with relu between them
  std::vector<Unit> beside;  // one where sizes change, else none
  Array operator()(const Array& x) const {
    Array y = x;
    for (size_t i = 0; i < units.size(); ++i) y = i + 1 < units.size() ? relu(units[i](y)) : units[i](y);
    return relu(y + (beside.empty() ? x : beside[0](x)));
  }
};

struct ResNet {
  Unit first;
  std::vector<Block> blocks;
  Dense out;
  bool pooled = false;
  Array operator()(const Array& x) const {
    Array y = relu(first(x));
    if (pooled) y = maxpool(y, 3, 2, 1);
    for (const Block& block : blocks) y = block(y);
    return out(flatten(global_meanpool(y)));
  }
};

Unit unit(Numbers& numbers, int64_t side, int64_t in, int64_t out, int64_t stride) {
  const ConvLayerOptions options{.stride = stride, .pad = side / 2, .bias = false};
  return {filter(numbers, side, in, out, {}, options), BatchNorm(out)};
}

Block block(Numbers& numbers, bool bottleneck, int64_t in, int64_t width, int64_t stride) {
  Block made;
  const int64_t out = bottleneck ? 4 * width : width;
  if (bottleneck) made.units.push_back(unit(numbers, 1, in, width, 1));
  made.units.push_back(unit(numbers, 3, bottleneck ? width : in, width, stride));
  made.units.push_back(bottleneck ? unit(numbers, 1, width, out, 1) : unit(numbers, 3, width, width, 1));
  if (stride != 1 || in != out) made.beside.push_back(unit(numbers, 1, in, out, stride));
  return made;
}

/// depth 18 and 50 as in the paper, 4: two blocks; image 224 begins with a stride and a pooling.
ResNet resnet_of(Numbers& numbers, int64_t depth, int64_t image, int64_t width, int64_t classes) {
  const bool large = image > 64, bottleneck = depth == 50;
  const std::vector<int> counts = depth == 50   ? std::vector<int>{3, 4, 6, 3}
                                  : depth == 18 ? std::vector<int>{2, 2, 2, 2}
                                                : std::vector<int>{1, 1};
  ResNet made;
  made.pooled = large;
  made.first = unit(numbers, large ? 7 : 3, 3, width, large ? 2 : 1);
  int64_t in = width;
  for (size_t stage = 0; stage < counts.size(); ++stage) {
    const int64_t stage_width = width << stage;
    for (int i = 0; i < counts[stage]; ++i) {
      made.blocks.push_back(block(numbers, bottleneck, in, stage_width, i == 0 && stage > 0 ? 2 : 1));
      in = bottleneck ? 4 * stage_width : stage_width;
    }
  }
  made.out = dense(numbers, in, classes);
  return made;
}

std::unique_ptr<Session> resnet(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t batch = sizes["batch"], image = sizes["image"], classes = sizes["classes"];
  const Array x = data(numbers.uniform({image, image, 3, batch}, 1), sizes, device);
  const Array y = numbers.whole({batch}, classes) | device;
  const ResNet model = resnet_of(numbers, sizes["depth"], image, sizes["width"], classes);
  return trained<ResNet>(model, Momentum{.eta = 1e-2, .rho = 0.9}, sizes, device,
                         [=](const ResNet& m) { return error_of(m(x), y); });
}

// --- GPT-2: Radford and others, "Language models are unsupervised multitask learners" (2019).

struct Layer {
  LayerNorm before;
  Dense inputs, project;
  LayerNorm middle;
  Dense wide, narrow;

  /// x is (width, time, batch).
  Array attend(const Array& x, int64_t heads) const {
    const int64_t width = x.size(0);
    const std::vector<Array> parts = split(inputs(before(x)), {width, width, width}, 0);
    return project(dot_product_attention(parts[0], parts[1], parts[2], {.heads = heads, .causal = true}).out);
  }
  Array forward(const Array& x, int64_t heads) const {
    const Array y = x + attend(x, heads);
    return y + narrow(wide(middle(y)));
  }
};

struct GPT {
  Embedding tokens;
  Array places;  // (width, time)
  std::vector<Layer> layers;
  LayerNorm last;
  int64_t heads = 1;

  /// x is (time, batch) of tokens -> (vocabulary, time * batch).
  Array operator()(const Array& x) const {
    Array y = tokens(x) + places;
    for (const Layer& layer : layers) y = layer.forward(y, heads);
    y = last(y);
    return matmul(transpose(tokens.weight), reshape(y, {y.size(0), y.size(1) * y.size(2)}));
  }
};

Layer layer(Numbers& numbers, int64_t width) {
  Layer made;
  made.before = made.middle = LayerNorm(width);
  made.inputs = dense(numbers, width, 3 * width);
  made.project = dense(numbers, width, width);
  made.wide = dense(numbers, width, 4 * width, gelu);
  made.narrow = dense(numbers, 4 * width, width);
  return made;
}

std::unique_ptr<Session> gpt(const Sizes& sizes, const Device& device) {
  Numbers numbers;
  const int64_t batch = sizes["batch"], time = sizes["time"], width = sizes["width"], vocabulary = sizes["vocabulary"];
  const Array x = numbers.whole({time, batch}, vocabulary) | device;
  const Array y = numbers.whole({time * batch}, vocabulary) | device;
  GPT model;
  model.tokens = Embedding(numbers.uniform({width, vocabulary}, 0.02));
  model.places = numbers.uniform({width, time}, 0.02);
  model.heads = sizes["heads"];
  for (int64_t i = 0; i < sizes["layers"]; ++i) model.layers.push_back(layer(numbers, width));
  model.last = LayerNorm(width);
  return trained<GPT>(model, AdamW{.eta = 3e-4, .lambda = 0.01}, sizes, device,
                      [=](const GPT& m) { return error_of(m(x), y); });
}

}  // namespace

std::unique_ptr<Session> make_training(const std::string& kind, const Sizes& sizes, const Device& device) {
  if (kind == "mlp") return mlp(sizes, device);
  if (kind == "lenet") return lenet(sizes, device);
  if (kind == "resnet") return resnet(sizes, device);
  if (kind == "gpt") return gpt(sizes, device);
  return nullptr;
}

}  // namespace gpu_check
