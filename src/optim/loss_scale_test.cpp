// The loss scale against torch.amp.GradScaler (tests/oracles/autocast.txt), and what it takes part in.
#include <rosin/loss_scale.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/approx.hpp>
#include <rosin/buffer.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/train.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Inputs = std::vector<Array>;

constexpr double infinity = std::numeric_limits<double>::infinity();

LossScaleOptions options_of(const OracleCase& entry) {
  return {.init = entry.number("init", 0),
          .growth = entry.number("growth", 0),
          .backoff = entry.number("backoff", 0),
          .interval = static_cast<int64_t>(entry.number("interval", 0))};
}

/// Steps of Adam; on devices the rule counts skipped steps too, so that only the scales are PyTorch's.
Inputs gradscaler(const OracleCase& entry, const Inputs& in) {
  Array x = in[0];
  State state = setup(LossScale{Adam{.eta = entry.number("eta", 0)}, options_of(entry)}, x);
  Inputs xs;
  std::vector<double> scales;
  for (int64_t i = 0; i < in[1].size(1); ++i) {
    const Array scale = scaled_loss(state, there(full(Shape{}, 1.0f)));
    update(state, x, cast(select(in[1], 1, i) * cast(scale, Float16), Float32));
    xs.push_back(x);
    scales.push_back(loss_scale(state).scale);
  }
  return {stack(xs, 1), cast(Array(scales, {static_cast<int64_t>(scales.size())}), Float32)};
}

TEST(LossScale, MovesAsPyTorchsDoes) {
  if (on_other_device()) GTEST_SKIP() << "rules on devices count skipped steps too";
  oracles::run_oracles("autocast.txt", {{"gradscaler", gradscaler}});
}

struct ScaledModel {
  Dense layer{2, 1};
  BatchNorm norm{1};
  Array operator()(const Array& x) const { return norm(layer(x)); }
};

std::vector<std::vector<float>> values_of(const std::vector<Array>& arrays) {
  std::vector<std::vector<float>> values;
  for (const Array& x : arrays) values.push_back(x.to_vector<float>());
  return values;
}

TEST(LossScale, SkippedStepsChangeNothingButTheScale) {
  ScaledModel model = ScaledModel{} | test_device();
  State state = setup(LossScale{Adam{}}, model);
  const Array x = there(rand({2, 4}));
  const auto step = [&](double factor) {
    const auto grad =
        gradient([&](const ScaledModel& m) { return scaled_loss(state, sum(square(m(x)) * factor)); }, model);
    update(state, model, grad);
  };
  step(1);
  const auto before = values_of(fleaves(model));
  const std::vector<float> moments = fleaves(state)[0].to_vector<float>();
  step(infinity);
  EXPECT_EQ(values_of(fleaves(model)), before);  // the running statistics too
  EXPECT_EQ(fleaves(state)[0].to_vector<float>(), moments);
  const LossScaleStatus now = loss_scale(state);
  EXPECT_EQ(now.scale, 32768);
  EXPECT_EQ(now.skipped, 1);
  EXPECT_EQ(now.good, 0);
  step(1);
  EXPECT_NE(values_of(fleaves(model)), before);
  EXPECT_EQ(loss_scale(state).good, 1);
}

TEST(LossScale, GivesTheStepsOfTheRuleAlone) {
  ScaledModel plain = ScaledModel{} | test_device(), scaled = plain;
  State state = setup(Adam{}, plain), with_scale = setup(LossScale{Adam{}, {.interval = 2}}, scaled);
  const Array x = there(rand({2, 4}));
  for (int i = 0; i < 5; ++i) {
    const auto loss = [&](const ScaledModel& m) { return sum(square(m(x) - 1)); };
    update(state, plain, gradient(loss, plain));
    update(with_scale, scaled,
           gradient([&](const ScaledModel& m) { return scaled_loss(with_scale, loss(m)); }, scaled));
  }
  EXPECT_EQ(values_of(fleaves(plain)), values_of(fleaves(scaled)));  // the scale is a power of two
  EXPECT_EQ(loss_scale(with_scale).scale, 65536 * 4);
}

TEST(LossScale, KeepsSmallGradientsOfHalfParametersInFloat32) {
  Array x = there(ones({1}, Float16));
  State state = setup(LossScale{MixedPrecision{Descent{1}}}, x);
  const Array small = there(cast(Array({0x1p-20f}, {1}), Float16));
  const Array loss_slope = cast(cast(small, Float32) * 65536, Float16);
  update(state, x, loss_slope);
  EXPECT_EQ(fleaves(state)[0].to_vector<float>(), std::vector<float>{1 - 0x1p-20f});
}

TEST(LossScale, StandsBeforeGlobalClippingWhoseCheckWaitsForIt) {
  Array x = there(zeros({2}));
  State state = setup(LossScale{OptimiserChain(ClipGlobalNorm{1}, Descent{1})}, x);
  update(state, x, there(Array({3 * 65536.0f, 4 * 65536.0f}, {2})));
  EXPECT_TRUE(allclose(x, there(Array({-0.6f, -0.8f}, {2}))));
  update(state, x, there(Array({3.0f, static_cast<float>(infinity)}, {2})));
  EXPECT_TRUE(allclose(x, there(Array({-0.6f, -0.8f}, {2}))));
  EXPECT_EQ(loss_scale(state).skipped, 1);
}

TEST(LossScale, TrainsByItselfInTrain) {
  ScaledModel model = f16(ScaledModel{}) | test_device();
  State state = setup(LossScale{MixedPrecision{Descent{0.1}}, {.init = 0x1p30}}, model);
  const Array x = there(cast(rand({2, 4}), Float16)), y = there(cast(rand({1, 4}), Float16));
  const std::vector<std::pair<Array, Array>> data(30, {x, y});
  double first = 0, last = 0;
  train([](const ScaledModel& m, const Array& a, const Array& b) { return mse(cast(m(a), Float32), cast(b, Float32)); },
        model, data, state, [&](const TrainStep& step) { (step.item == 1 ? first : last) = step.loss.item(); });
  EXPECT_LT(last, first);
  EXPECT_GT(loss_scale(state).skipped, 5);
  EXPECT_LT(loss_scale(state).skipped, 25);
}

TEST(LossScale, StopsAtALossThatIsNotFinite) {
  Array x = there(ones({1}));
  State state = setup(LossScale{Descent{1}}, x);
  const std::vector<Array> data(2, there(full({1}, std::nan(""), Float32)));
  const auto text = error_of([&] { train([](const Array& p, const Array& d) { return sum(p * d); }, x, data, state); },
                             ErrorKind::numeric);
  EXPECT_NE(text.find("train: loss is NaN on item 1"), std::string::npos) << text;
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>{1});
}

TEST(LossScale, IsCopiedWithTheState) {
  Array x = ones({1});
  State state = setup(LossScale{Descent{1}}, x);
  const State before = state;
  update(state, x, full({1}, infinity, Float32));
  EXPECT_EQ(loss_scale(state).scale, 32768);
  EXPECT_EQ(loss_scale(before).scale, 65536);
}

TEST(LossScale, RefusesWhatItCannotBe) {
  const Array x = ones({1});
  const auto refusal = [&](const LossScaleOptions& options) {
    return error_of([&] { setup(LossScale{Descent{}, options}, x); }, ErrorKind::argument);
  };
  EXPECT_EQ(refusal({.init = 0}),
            "setup: LossScale: init, the first scale, must be positive; got 0.0; the default is 65536");
  EXPECT_EQ(refusal({.growth = 0.5}), "setup: LossScale: growth must be at least 1; got 0.5; the default is 2");
  EXPECT_EQ(refusal({.backoff = 2}), "setup: LossScale: backoff must be in (0, 1]; got 2.0; the default is 0.5");
  EXPECT_EQ(refusal({.interval = 0}),
            "setup: LossScale: interval must be a step at least; got 0.0; the default is 2000");
  EXPECT_EQ(error_of([&] { loss_scale(setup(Descent{}, x)); }, ErrorKind::argument),
            "loss_scale: the state must have one; got a state without; write setup(LossScale{rule}, model)");
  EXPECT_TRUE(same(scaled_loss(setup(Descent{}, x), x), x));
}

}  // namespace
}  // namespace rosin
