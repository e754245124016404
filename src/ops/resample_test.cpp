// Interpolation, windows and grids: second gradients, types, and what they say to wrong input. The op suite compares
// them with PyTorch (tests/oracles/resample.txt).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/resample.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

TEST(Resample, SecondGradientsAgreeWithDifferences) {
  const Array x = reshape(cos(arange(0.0, 24.0, 1.0, Float64)), {4, 3, 2, 1});
  const Array grid = reshape(sin(arange(0.0, 12.0, 1.0, Float64) * 1.1) * 0.9, {2, 3, 2, 1});
  const auto check = [](const char* name, const std::function<Array(const Array&)>& f, const Array& at) {
    const auto slope = [&](const Array& a) {
      return gradient([&](const Array& b) { return layer_testing::weighed(square(f(b))); }, a);
    };
    layer_testing::check_function_gradient(slope, at, name);
  };
  const InterpolateOptions cubic{.size = {3, 5}, .mode = Interpolation::cubic},
      near{.size = 5, .mode = Interpolation::nearest};
  check(
      "cubic", [&](const Array& a) { return interpolate(a, cubic); }, x);
  check(
      "nearest", [&](const Array& a) { return interpolate(a, near); }, x);
  check(
      "fold",
      [](const Array& a) {
        return fold(unfold(a, 2), {4, 3}, 2);
      },
      x);
  check(
      "grid_sample by x", [&](const Array& a) { return grid_sample(a, grid); }, x);
  check(
      "grid_sample by grid", [&](const Array& a) { return grid_sample(x, a); }, grid);
}

TEST(Resample, SecondGradientsOfCubicGridsAgreeWithDifferences) {
  const Array x = reshape(cos(arange(0.0, 24.0, 1.0, Float64)), {4, 3, 2, 1});
  const Array grid = reshape(sin(arange(0.0, 12.0, 1.0, Float64) * 1.1) * 0.9, {2, 3, 2, 1});
  const GridSampleOptions cubic{.mode = Interpolation::cubic, .border = GridBorder::border};
  const auto slope = [&](const Array& a) {
    return gradient([&](const Array& b) { return layer_testing::weighed(square(grid_sample(x, b, cubic))); }, a);
  };
  layer_testing::check_function_gradient(slope, grid, "cubic grid_sample by grid");
  EXPECT_THROW(grid_sample(x, grid, {.mode = Interpolation::area}), Error);
}

TEST(Resample, PointsOfLargeImagesAreFoundInEveryType) {
  Rng rng(5);
  const Array grid = uniform(rng, {2, 20, 10, 2}, -1.1, 1.1), x = randn(rng, {90, 70, 3, 2});
  for (const DType type : {Float16, BFloat16}) {
    for (const Interpolation mode : {Interpolation::nearest, Interpolation::linear, Interpolation::cubic}) {
      const Array halves = cast(x, type), points = cast(grid, type), y = grid_sample(halves, points, {.mode = mode});
      const Array exact = grid_sample(cast(halves, Float64), cast(points, Float64), {.mode = mode});
      EXPECT_EQ(y.dtype(), type);
      const double ulp = type == Float16 ? 0x1p-11 : 0x1p-8;
      EXPECT_TRUE(allclose(cast(y, Float64), exact, {.rtol = ulp, .atol = 1e-3 * ulp})) << to_string(type);
    }
  }
  const Array theta = randn(rng, {2, 3, 2}), wanted = affine_grid(cast(cast(theta, BFloat16), Float64), {300, 5});
  const Array found = cast(affine_grid(cast(theta, BFloat16), {300, 5}), Float64);
  EXPECT_TRUE(allclose(found, wanted, {.rtol = 0x1p-8, .atol = 1e-6}));
  const int64_t n = 4099;  // a Float32 does not hold every place
  const Array pixels = cast(reshape(mod(arange(n * n), 251), {n, n, 1, 1}), UInt8), corner = full({2, 1, 1, 1}, 1.0f);
  const Array back = reshape(Array({1.0f - 2.0f / (n - 1), 1.0f}, {2}), {2, 1, 1, 1});
  const GridSampleOptions exactly{.mode = Interpolation::nearest, .align_corners = true};
  EXPECT_EQ(grid_sample(pixels, corner, exactly).item(), (n * n - 1) % 251);
  EXPECT_EQ(grid_sample(pixels, back, exactly).item(), (n * n - 2) % 251);
}

TEST(Resample, ElementsThatAreTakenAsTheyAreKeepTheirBits) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const Array special =
      expand(reshape(Array({-0.0f, infinite, std::nanf("1"), 1e-42f, -3.0f}, {5}), {5, 1, 1, 1}), {5, 3, 70, 2});
  const Array y = interpolate(special, {.size = {7, 4}, .mode = Interpolation::nearest});
  const Array columns = gather(special, Array({0, 0, 1, 2, 2, 3, 4}, {7}), 0);
  const Array wanted = gather(columns, Array({0, 0, 1, 2}, {4}), 1);
  const std::vector<float> found = y.to_vector(), expected = wanted.to_vector();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i])) << i;
  }
  // Corners at corners: these elements have no part in each other.
  const Array line({infinite, 1.0f, std::nanf(""), 2.0f}, {4, 1, 1});
  const std::vector<float> same = interpolate(line, {.size = 4, .align_corners = true}).to_vector();
  EXPECT_EQ(same[1], 1);
  const std::vector<float> twice = interpolate(line, {.size = 7, .align_corners = true}).to_vector();
  EXPECT_EQ(twice[2], 1);
  EXPECT_EQ(twice[6], 2);
  EXPECT_TRUE(std::isnan(twice[3]) && std::isinf(twice[1]));
}

TEST(Resample, ManyPlanesInFloat32AgreeWithFloat64) {
  Rng rng(7);
  const auto agrees = [&](const Shape& shape, const InterpolateOptions& options) {
    const Array x = randn(rng, shape), exact = cast(x, Float64);
    const auto weighed_sum = [&](const Array& a) { return layer_testing::weighed(interpolate(a, options)); };
    EXPECT_TRUE(
        allclose(cast(interpolate(x, options), Float64), interpolate(exact, options), {.rtol = 1e-5, .atol = 1e-5}));
    EXPECT_TRUE(
        allclose(cast(gradient(weighed_sum, x), Float64), gradient(weighed_sum, exact), {.rtol = 1e-4, .atol = 1e-4}));
  };
  for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic, Interpolation::area}) {
    agrees({13, 9, 67, 3}, {.size = {29, 5}, .mode = mode});
    agrees({200, 3, 2, 1}, {.size = {77, 3}, .mode = mode});
    agrees({4, 150, 5, 2}, {.size = {4, 301}, .mode = mode});
    agrees({5, 4, 3, 33, 2}, {.size = {9, 4, 7}, .mode = mode});
    agrees({3001, 2, 1}, {.size = 17, .mode = mode});
    agrees({150, 130, 2, 1}, {.size = {220, 290}, .mode = mode});  // in parts of an image
    agrees({40, 30, 20, 1, 2}, {.size = {45, 33, 61}, .mode = mode});
  }
}

TEST(Resample, NothingAndOneElement) {
  const InterpolateOptions linear{.size = {6, 5}};
  EXPECT_EQ(interpolate(zeros({3, 2, 4, 0}), linear).shape(), (Shape{6, 5, 4, 0}));
  EXPECT_EQ(interpolate(full({1, 1, 2, 1}, 3.0f), linear).to_vector(), std::vector<float>(60, 3.0f));
  EXPECT_EQ(interpolate(full({4, 3, 1, 1}, 3.0f), {.size = 1}).to_vector(), std::vector<float>{3.0f});
}

TEST(Resample, HalvesAndMessages) {
  const Array x = ones({4, 4, 1, 1}, Float16);
  EXPECT_EQ(interpolate(x, {.scale = {2.0}}).dtype(), Float16);
  EXPECT_EQ(interpolate(x, {.scale = {2.5}}).shape(), (Shape{10, 10, 1, 1}));
  EXPECT_EQ(error_of([&] { interpolate(x, {}); }, ErrorKind::argument),
            "interpolate: either size or scale is given; got none; write {.size = {8, 8}}");
  error_of([&] { interpolate(x, {.size = 0}); }, ErrorKind::argument);
  error_of([&] { interpolate(x, {.scale = {0.1}}); }, ErrorKind::argument);
  error_of([&] { interpolate(x, {.scale = {1e300}}); }, ErrorKind::argument);
  error_of([&] { interpolate(x, {.scale = {std::nan("")}}); }, ErrorKind::argument);
  EXPECT_EQ(error_of([&] { interpolate(x, {.size = 1 << 25}); }, ErrorKind::argument),
            "interpolate: a dim gets at most 2^24 elements; got 33554432; resize parts, or repeat elements");
  error_of([&] { interpolate(x, {.scale = {1, 2, 3}}); }, ErrorKind::argument);
  error_of([&] { interpolate(x, {.size = 2, .mode = Interpolation::area, .align_corners = true}); },
           ErrorKind::argument);
  error_of([&] { interpolate(x, {.size = 2, .align_corners = true, .antialias = true}); }, ErrorKind::argument);
  EXPECT_EQ(unfold(zeros({4, 4, 3, 0}), 2).shape(), (Shape{9, 12, 0}));
  error_of([&] { unfold(x, 5); }, ErrorKind::argument);
  error_of([&] { fold(ones({4, 3, 1}), {4, 4}, 2); }, ErrorKind::shape);
  error_of([&] { affine_grid(ones({2, 2, 1}), {4, 4}); }, ErrorKind::shape);
  error_of([&] { grid_sample(x, ones({3, 2, 2, 1})); }, ErrorKind::shape);
}

/// A thread keeps tables; one that has made none before gives what they must not change.
TEST(Interpolate, TablesOfOtherOptionsAreNotTaken) {
  const Array x = reshape(sin(cast(arange(9), Float32)), {9, 1, 1});
  const InterpolateOptions options[] = {{.size = 5},
                                        {.size = 5, .align_corners = true},
                                        {.size = 5, .antialias = true},
                                        {.size = 5, .mode = Interpolation::cubic},
                                        {.size = 5, .mode = Interpolation::area},
                                        {.size = 5, .mode = Interpolation::nearest},
                                        {.size = 5, .mode = Interpolation::nearest_exact}};
  for (int times = 0; times < 2; ++times) {
    for (const InterpolateOptions& one : options) {
      std::vector<float> alone;
      std::thread([&] { alone = interpolate(x, one).to_vector<float>(); }).join();
      EXPECT_EQ(interpolate(x, one).to_vector<float>(), alone) << static_cast<int>(one.mode) << ", time " << times;
    }
  }
}

}  // namespace
}  // namespace rosin
