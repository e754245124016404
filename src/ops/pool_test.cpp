// Pooling against PyTorch (tests/oracles/conv.txt), adaptive and global forms, and what is refused.
#include <rosin/pool.hpp>

#include <gtest/gtest.h>

#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Arrays = std::vector<Array>;

Extents extents(const OracleCase& entry, const std::string& key) {
  return Extents(std::span<const int64_t>(entry.integers(key)));
}

TEST(Pool, AgreesWithPyTorch) {
  oracles::run_oracles("conv.txt",
                       {{"maxpool",
                         [](const OracleCase& e, const Arrays& x) {
                           return Arrays{maxpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
                         }},
                        {"meanpool", [](const OracleCase& e, const Arrays& x) {
                           return Arrays{meanpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
                         }}});
}

TEST(Pool, AdaptiveWindowsFollowFluxRule) {
  const Array x = cast(reshape(arange(7), {7, 1, 1}), Float32);
  EXPECT_EQ(adaptive_maxpool(x, 3).to_vector(), (std::vector<float>{2, 4, 6}));  // stride 2, window 3
  EXPECT_EQ(adaptive_meanpool(x, 3).to_vector(), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(global_meanpool(x).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(global_maxpool(x).item<float>(), 6);
}

TEST(Pool, WindowsThatDoNotFitAreRefused) {
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), 4), Error);
  EXPECT_THROW(maxpool(zeros({3, 3}), 2), Error);
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), {2, 2, 2}), Error);
}

TEST(Pool, AdaptiveFormsNameThemselves) {
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(ones({4, 1, 1}), 5));
            }),
            "adaptive_maxpool: the result's sizes must be in [1, input size]; got 5 for an input of 4; use a smaller "
            "size");
  EXPECT_EQ(error_of([] { static_cast<void>(adaptive_meanpool(ones({4}), 2)); }).substr(0, 18), "adaptive_meanpool:");
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(full({4, 1, 1}, true), 2));
            }),
            "adaptive_maxpool: it takes numbers; got Bool; convert with cast(x, Float32)");
}

// Values of windows with steps, rounded up, with places and other divisors are PyTorch's: tests/opinfo.

TEST(Pool, WindowsWithStepsAreTheSameInAllTypes) {
  const Array x = mod(arange(10 * 9 * 2 * 2) * 7, 23), wide = cast(reshape(x, {10, 9, 2, 2}), Float64);
  const WindowOptions steps{.dilation = {2, 3}, .ceil = true};
  const auto largest = [&](DType type) { return maxpool(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, steps); };
  const MeanWindowOptions inside{.dilation = {2, 3}, .ceil = true, .count_pad = false};
  const auto means = [&](DType type) { return meanpool(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, inside); };
  const MaxPooled places = maxpool_with_indices(wide, {3, 2}, {2, 1}, {1, 0}, steps);
  for (const DType type : {Float32, Float16, BFloat16, Int32, Int8}) {
    EXPECT_EQ(largest(type).to_vector<double>(), largest(Float64).to_vector<double>()) << to_string(type);
    const MaxPooled got = maxpool_with_indices(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, steps);
    EXPECT_EQ(got.indices.to_vector<int64_t>(), places.indices.to_vector<int64_t>()) << to_string(type);
  }
  EXPECT_TRUE(allclose(means(Float16), means(Float64), {.rtol = 1e-3}));
  EXPECT_TRUE(allclose(means(Float32), means(Float64)));
}

TEST(Pool, ElementsGoBackToTheirPlaces) {
  const Array x = reshape(Array({1.0f, 5.0f, 2.0f, 4.0f, 3.0f, 0.0f, 7.0f, 6.0f}, {8}), {4, 1, 2});
  const MaxPooled pooled = maxpool_with_indices(x, 2);
  EXPECT_EQ(pooled.indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 0, 2}));
  EXPECT_EQ(max_unpool(pooled.values, pooled.indices, 4).to_vector(), (std::vector<float>{0, 5, 0, 4, 3, 0, 7, 0}));
  EXPECT_THROW(eval(max_unpool(pooled.values, pooled.indices, 3)), Error);
  EXPECT_THROW(max_unpool(pooled.values, x, 4), Error);
}

TEST(Pool, NormsOfWindowsAreNNlibs) {
  const Array x = reshape(Array({3.0, 4.0, 0.0, 2.0, 1.0}, {5}), {5, 1, 1});
  EXPECT_TRUE(allclose(lpnormpool(x, 2, 2), Array({5.0, 2.0}, {2, 1, 1})));
  EXPECT_TRUE(allclose(lpnormpool(x, 1, 2, 1, 1), Array({3.0, 7.0, 4.0, 2.0, 3.0, 1.0}, {6, 1, 1})));
  EXPECT_EQ(lpnormpool(x, 2, 2, {}, {}, {.ceil = true}).shape(), (Shape{3, 1, 1}));
  EXPECT_THROW(lpnormpool(x, 0, 2), Error);
}

TEST(Pool, LargeStepsDoNotFit) {
  EXPECT_EQ(error_of([] {
              static_cast<void>(maxpool(ones({4, 1, 1}), 3, 1, 0, {.dilation = 2}));
            }),
            "maxpool: the window must be at least 1 and fit the padded input, the stride at least 1; got size 4, "
            "window 3, stride 1, pad (0, 0), dilation 2 in dim 0; use a smaller window or more padding");
}

}  // namespace
}  // namespace rosin
