// ROSIN_EAGER and ROSIN_NAN_CHECK, each in a process of its own. Read first: run_itself.hpp.
#include <cmath>
#include <cstdio>
#include <limits>

#include <rosin/attention.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>
#include <rosin/vmap.hpp>

#include "error_testing.hpp"
#include "run_itself.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

TEST(DISABLED_Inside, EveryOpIsEvaluated) {
  const Array x({1.0f, 2.0f, 3.0f}, {3});
  reset_stats();
  const Array y = exp(x * 2.0f);
  EXPECT_EQ(stats().evaluations, 2);
  EXPECT_NEAR(sum(y).item(), 7.389056 + 54.59815 + 403.4288, 1e-3);
  const Array g = gradient([](const Array& a) { return sum(a * a); }, x);
  EXPECT_EQ(g.to_vector(), (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(std::isnan(log(-x).to_vector()[0]));
  reset_stats();
  const TopK best = topk(x, 2);
  EXPECT_EQ(stats().evaluations, 1);
  EXPECT_EQ(best.values.to_vector(), (std::vector<float>{3, 2}));
  EXPECT_EQ(best.indices.to_vector<int32_t>(), (std::vector<int32_t>{2, 1}));
  const auto twice = [](const Array& a) { return sum(square(topk(a, 1).values)); };
  EXPECT_EQ(gradient(twice, x).to_vector(), (std::vector<float>{0, 0, 6}));
  EXPECT_EQ(concat({x, x, x, x, x}, 0).count(), 15);
}

/// The result is there before anybody asks for what the gradient needs beside it.
TEST(DISABLED_Inside, AttentionHasItsGradient) {
  const Array q = randn({8, 5, 2}), k = randn({8, 5, 2}), v = randn({8, 5, 2}), along = randn({8, 5, 2});
  const auto weighed = [](const Array& a, const Array& b, const Array& c) {
    return sum(square(dot_product_attention(a, b, c, {.heads = 2, .causal = true}).out));
  };
  const Array x = cast(q, Float64), step = 1e-5 * cast(along, Float64), b = cast(k, Float64), c = cast(v, Float64);
  const double slope = (weighed(x + step, b, c) - weighed(x - step, b, c)).item() / 2e-5;
  for (const Device& device : {Device(), some_device()}) {
    const auto [dq, dk, dv] = gradient(weighed, q | device, k | device, v | device);
    EXPECT_NEAR(sum((dq | cpu) * along).item(), slope, 1e-3 * std::abs(slope) + 1e-3) << device.name();
  }
}

/// What is made from the program alone is evaluated too, and still stands where it is used.
TEST(DISABLED_Inside, ConstantsFollow) {
  const Device device = some_device();
  const Array odd = arange(3) * 2 + 1, x = full({3}, 10, odd.dtype()) | device;
  EXPECT_EQ((x + odd).to_vector<int>(), (std::vector<int>{11, 13, 15}));
  EXPECT_EQ(odd.to_vector<int>(), (std::vector<int>{1, 3, 5}));
}

/// What is recorded of one observation has no value that an op could be evaluated with.
TEST(DISABLED_Inside, VmapIsOfAllObservations) {
  const Array x({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  const auto scaled = [](const Array& v) { return v * sum(v) + vmap([](const Array& e) { return e * e; }, v); };
  EXPECT_EQ(vmap(scaled, x).to_vector(), (std::vector<float>{4, 10, 30, 44, 80, 102}));
  const Array slopes =
      vmap([](const Array& v) { return gradient([](const Array& a) { return sum(a * a * a); }, v); }, x);
  EXPECT_EQ(slopes.to_vector(), (std::vector<float>{3, 12, 27, 48, 75, 108}));
  reset_stats();
  const Array y = x + 1;
  EXPECT_EQ(stats().evaluations, 1);  // ops after it are evaluated again
}

/// Three terms of a gradient meet at x, one of them through reshapes of a reshape.
Array slope_through_reshapes() {
  Rng rng(1);
  const Array x = randn(rng, {16, 64}), u = randn(rng, {16, 64}), t = randn(rng, {16, 64, 2});
  const auto loss = [&](const Array& a) {
    const Array turned = reshape(a, {128, 2, 1, 4}), both = stack({a, a}, 2);
    return sum(reshape(turned, {16, 64}) * u) + sum(both * t);
  };
  return gradient(loss, x);
}

TEST(DISABLED_Inside, GradientsAddUpInTheSameOrder) {
  for (const float slope : slope_through_reshapes().to_vector()) std::printf("%a ", static_cast<double>(slope));
}

TEST(DISABLED_Inside, NanIsFound) {
  for (const Device& device : {Device(), some_device()}) {
    const Array x = Array({4.0f, 1.0f, -1.0f, -2.0f}, {2, 2}) | device;
    EXPECT_EQ(sum(abs(x)).item(), 8);
    EXPECT_EQ(error_of([&] { return sum(sqrt(x) + 1); }),
              "sqrt: the result must have no NaN where ROSIN_NAN_CHECK is 1; got 2 of 4 elements, the first at (0, 1); "
              "no operand has NaN: keep them inside the op's range");
    EXPECT_EQ(sum(x).item(), 2);
  }
  const Array data({1.0f, std::numeric_limits<float>::quiet_NaN()}, {2});
  EXPECT_EQ(error_of([&] { return topk(data, 1).indices; }).substr(0, 5), "sort:");
  EXPECT_EQ(
      error_of([&] { return data * 2.0f; }),
      "mul: the result must have no NaN where ROSIN_NAN_CHECK is 1; got 1 of 2 elements, the first at (1); array 0 "
      "of its operands has NaN already: look at the data, or where that comes from");
}

TEST(DISABLED_Inside, NanIsFoundInGradients) {
  const Array zero({0.0f, 1.0f}, {2});
  const std::string said =
      error_of([&] { return gradient([](const Array& a) { return sum(sqrt(a) * a / a); }, zero); });
  EXPECT_EQ(said.substr(0, 4), "div:") << said;  // 0 / 0
  const auto slope = [](const Array& a) { return sum(sqrt(a * 0.0f)); };
  EXPECT_EQ(error_of([&] { return slope(zero); }), "no error");
  EXPECT_NE(error_of([&] { return gradient(slope, zero); }).find("NaN"), std::string::npos);
}

struct Pair {
  Array a, b;
};

TEST(DISABLED_Inside, UpdatesRefuseGradientsThatAreNotFinite) {
  Pair model{ones({2}), ones({1})};
  State state = setup(Descent{0.5}, model);
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(error_of([&] {
                update(state, model, Pair{ones({2}), Array({wrong}, {1})});
              }),
              "update: a gradient must be finite; it is not at b; lower the learning rate or look for such values in "
              "the data");
    EXPECT_EQ(sum(model.a).item() + sum(model.b).item(), 3);
  }
  update(state, model, Pair{ones({2}), ones({1})});
  EXPECT_EQ(sum(model.a).item() + sum(model.b).item(), 1.5);
}

TEST(Watch, EagerEvaluatesEveryOp) { expect_success(run_itself("EveryOpIsEvaluated", "ROSIN_EAGER=1")); }
TEST(Watch, EagerAttentionHasItsGradient) { expect_success(run_itself("AttentionHasItsGradient", "ROSIN_EAGER=1")); }
TEST(Watch, EagerConstantsFollow) { expect_success(run_itself("ConstantsFollow", "ROSIN_EAGER=1")); }
TEST(Watch, EagerVmapIsOfAllObservations) { expect_success(run_itself("VmapIsOfAllObservations", "ROSIN_EAGER=1")); }
TEST(Watch, EagerGradientsAddUpInTheSameOrder) {
  const Outcome usual = run_itself("GradientsAddUpInTheSameOrder", ""),
                eager = run_itself("GradientsAddUpInTheSameOrder", "ROSIN_EAGER=1");
  expect_success(eager);
  const auto numbers = [](const std::string& text) { return text.substr(text.find("0x"), 16 * 64 * 8); };
  EXPECT_EQ(numbers(eager.text), numbers(usual.text));
}
TEST(Watch, NanIsAnErrorThatNamesItsOp) { expect_success(run_itself("NanIsFound", "ROSIN_NAN_CHECK=1")); }
TEST(Watch, UpdatesLookForNanToo) {
  expect_success(run_itself("UpdatesRefuseGradientsThatAreNotFinite", "ROSIN_NAN_CHECK=1"));
}
TEST(Watch, NanIsFoundInTheBackwardPass) { expect_success(run_itself("NanIsFoundInGradients", "ROSIN_NAN_CHECK=1")); }

}  // namespace
}  // namespace rosin
