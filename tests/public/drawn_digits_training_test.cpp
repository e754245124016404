// Holds what the drawn digits promise: a linear softmax stays below 0.85, the demo's default MLP passes 0.95.
// Sizes and options are those of examples/demo.
#include <rosin/rosin.hpp>

#include <gtest/gtest.h>

#include <tuple>

namespace rosin {
namespace {

struct LinearSoftmax {
  Dense out{784, 10};
  Array operator()(const Array& x) const { return out(flatten(x)); }
};
struct MLP {
  Dense hidden{784, 256, relu};
  Dense out{256, 10};
  Array operator()(const Array& x) const { return out(hidden(flatten(x))); }
};

template <class Model> double accuracy_after_training(int epochs) {
  seed(1);
  Model model;
  auto state = setup(Adam{.eta = 1e-3}, model);
  ImageArrays train = image_arrays(draw_digits(20000, 1)), test = image_arrays(draw_digits(5000, 2));
  const Array centre = mean(train.images), spread = stddev(train.images);
  train.images = (train.images - centre) / spread;
  test.images = (test.images - centre) / spread;
  DataLoader loader(std::tuple{train.images, onehotbatch(train.labels, 10)}, {.batchsize = 64, .shuffle = true});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto [x, y] : loader) {
      auto [loss, grad] = withgradient([&](const Model& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
    }
  }
  return mean(onecold(model(test.images)) == test.labels).item();
}

TEST(SlowDrawnDigits, ALinearSoftmaxStaysBelowEightyFivePercent) {
  EXPECT_LT(accuracy_after_training<LinearSoftmax>(10), 0.85);
}

TEST(SlowDrawnDigits, TheDefaultMlpPassesNinetyFivePercent) { EXPECT_GT(accuracy_after_training<MLP>(10), 0.95); }

}  // namespace
}  // namespace rosin
