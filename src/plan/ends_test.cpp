// What follows element by element from sums of a kernel is that kernel's end, and what follows from numbers or from a
// few values of rows is computed where it is read.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>

#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

class Ends : public testing::Test {
 protected:
  const Array x = reshape(cast(arange(12), Float32), {3, 4}), weight = Array(Values{1, 2, 3}, {3});
  void SetUp() override { eval(); }
};

TEST_F(Ends, FollowFromTheSumsOfAKernel) {
  Array deviation;
  EXPECT_EQ(launches([&] { return deviation = 2 * sqrt(mean(square(x), 1)); }), (Launched{1, 0}));
  const Values wanted{2 * std::sqrt(126.f / 4), 2 * std::sqrt(166.f / 4), 2 * std::sqrt(214.f / 4)};
  const Values got = deviation.to_vector();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

TEST_F(Ends, MayReadSeveralSums) {
  Array both;
  EXPECT_EQ(launches([&] { return both = sum(x, 1) / (1 + sum(square(x), 1)); }), (Launched{1, 0}));
  const Values wanted{18.f / 127, 22.f / 167, 26.f / 215}, got = both.to_vector();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

TEST_F(Ends, WaitForNothingElse) {
  Array sums;
  // The sum of x does not wait for the other call: what adds both is a kernel of its own.
  const auto f = [&] {
    const Array first = sum(x, 1);
    return sums = first + cumsum(reshape(weight, {3, 1}), 0);
  };
  EXPECT_EQ(launches(f), (Launched{2, 1}));
  EXPECT_EQ(sums.to_vector(), (Values{18 + 1, 22 + 3, 26 + 6}));
}

TEST_F(Ends, OfEndsAreKernels) {
  Array twice;
  const auto f = [&] {
    const Array scale = rsqrt(mean(square(x), 1));
    return twice = sum(x * scale, 1) * 2 + scale;  // two sums over columns, each with an end
  };
  EXPECT_EQ(launches(f), (Launched{2, 0}));
  const Values got = twice.to_vector();
  for (int i = 0; i < 3; ++i) {
    double sum = 0, squares = 0;
    for (int k = 0; k < 4; ++k) sum += i + 3 * k, squares += (i + 3 * k) * (i + 3 * k);
    const double scale = 1 / std::sqrt(squares / 4);
    EXPECT_NEAR(got[static_cast<size_t>(i)], sum * scale * 2 + scale, 1e-5) << i;
  }
}

TEST_F(Ends, ANumberAndItsUsesAreOneKernel) {
  Array scaled;
  EXPECT_EQ(launches([&] { return scaled = sum(x * (cast(full({}, 3), Float32) * 0.5), 0); }), (Launched{1, 0}));
  EXPECT_EQ(scaled.to_vector(), (Values{4.5, 18, 31.5, 45}));
}

TEST_F(Ends, ALossOfLabelsAndItsGradientAreOneKernel) {
  const Array labels(std::vector<int32_t>{2, 0, 1, 2}, {4});
  eval();
  Array loss, slope;
  const auto step = [&] {
    const auto [value, gradient] = withgradient([&](const Array& z) { return labelcrossentropy(z, labels); }, x);
    loss = value;
    return slope = gradient;
  };
  EXPECT_EQ(launches(step), (Launched{1, 1}));  // the call looks at the labels
  const double parts = std::exp(0.) + std::exp(1.) + std::exp(2.);
  EXPECT_NEAR(loss.item(), std::log(parts) - (2 + 0 + 1 + 2) / 4., 1e-6);
  const Values got = slope.to_vector();
  const int wanted[] = {2, 0, 1, 2};
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(got[static_cast<size_t>(i)], (std::exp(i % 3) / parts - (wanted[i / 3] == i % 3)) / 4, 1e-6) << i;
  }
}

TEST_F(Ends, DevicesComputeThemWhereSumsAreAddedUp) {
  if (!functional("reference")) GTEST_SKIP() << why_not("reference");
  const Device device = get_device("reference", 0);
  const Array images = reshape(cast(arange(4 * 4 * 8 * 2), Float32) * 0.01, {4, 4, 8, 2});
  BatchNorm here(8), there = BatchNorm(8) | device;
  const auto step = [&](const BatchNorm& layer, const Array& from) {
    return gradient([&](const BatchNorm& m, const Array& z) { return sum(m(z) * z); }, layer, from);
  };
  const Array moved = images | device;
  eval();
  const auto wanted = step(here, images);
  const int64_t before = stats().launches;
  const auto got = step(there, moved);
  eval();
  // Sums and squares, the result's sum with the sums of the gradient, its elements; running statistics.
  EXPECT_LE(stats().launches - before, 9);
  EXPECT_LT(maximum(abs(std::get<1>(got) - (std::get<1>(wanted) | device))).item(), 1e-5);
  EXPECT_LT(maximum(abs(std::get<0>(got).scale - (std::get<0>(wanted).scale | device))).item(), 1e-4);
}

}  // namespace
}  // namespace rosin
