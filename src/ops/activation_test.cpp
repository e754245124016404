// Forms of activations with parameters, by hand from their definitions (ONNX's HardSigmoid, Selu and Swish). Values of
// the others stand in tests/oracles/activations.txt.
#include <rosin/activation.hpp>

#include <gtest/gtest.h>

#include <limits>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;

TEST(Activation, HardsigmoidTakesSlopeAndOffset) {
  const Array x({-3.0, -2.5, 0.0, 1.0, 2.5, 9.0}, {6});
  expect_near(hardsigmoid(x, 0.2, 0.5), {0, 0, 0.5, 0.7, 1, 1}, 1e-15);
  expect_near(hardsigmoid(x, 1.0 / 6, 0.5), hardsigmoid(x).to_vector<double>(), 1e-15);
  expect_near(gradient([](const Array& a) { return sum(hardsigmoid(a, 0.2, 0.5)); }, x), {0, 0, 0.2, 0.2, 0, 0}, 1e-15);
  EXPECT_TRUE(std::isnan(hardsigmoid(std::numeric_limits<double>::quiet_NaN(), 0.2, 0.5).item()));
}

TEST(Activation, SeluTakesAlphaAndScale) {
  const Array x({-1.0, 0.0, 2.0}, {3});
  expect_near(selu(x, 2, 3), {6 * (std::exp(-1.0) - 1), 0, 6}, 1e-15);
  expect_near(selu(x, 1.6732632423543772, 1.0507009873554805), selu(x).to_vector<double>(), 1e-15);
  layer_testing::check_function_gradient([](const Array& a) { return selu(a, 2, 3); }, x + 0.5, "selu");
}

TEST(Activation, SwishTakesTheSlopeOfItsSigmoid) {
  const Array x({-1.0, 0.0, 2.0}, {3});
  expect_near(swish(x, 0.5), {-1 / (1 + std::exp(0.5)), 0, 2 / (1 + std::exp(-1.0))}, 1e-15);
  expect_near(swish(x, 1), swish(x).to_vector<double>(), 1e-15);
  layer_testing::check_function_gradient([](const Array& a) { return swish(a, 1.5); }, x, "swish");
}

}  // namespace
}  // namespace rosin
