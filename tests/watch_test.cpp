// ROSIN_EAGER and ROSIN_NAN_CHECK, each in a process of its own. Read first: run_itself.hpp.
#include <cmath>
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
TEST(Watch, NanIsAnErrorThatNamesItsOp) { expect_success(run_itself("NanIsFound", "ROSIN_NAN_CHECK=1")); }
TEST(Watch, UpdatesLookForNanToo) {
  expect_success(run_itself("UpdatesRefuseGradientsThatAreNotFinite", "ROSIN_NAN_CHECK=1"));
}
TEST(Watch, NanIsFoundInTheBackwardPass) { expect_success(run_itself("NanIsFoundInGradients", "ROSIN_NAN_CHECK=1")); }

}  // namespace
}  // namespace rosin
