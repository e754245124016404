// Interpolation, windows and grids against PyTorch (tests/oracles/resample.txt), second gradients, and what they say to
// wrong input.
#include <gtest/gtest.h>

#include <sstream>

#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/random.hpp>
#include <rosin/resample.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::extents_of;
using oracles::is_set;
using oracles::OracleCase;
using Inputs = std::vector<Array>;

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> values;
  for (std::string part; std::getline(in, part, ',');) values.push_back(std::stod(part));
  return values;
}

Inputs interpolated(const OracleCase& e, const Inputs& x) {
  const std::string& mode = e.attributes.at("mode");
  InterpolateOptions options{.mode = mode == "nearest"  ? Interpolation::nearest
                                     : mode == "linear" ? Interpolation::linear
                                     : mode == "cubic"  ? Interpolation::cubic
                                                        : Interpolation::area,
                             .align_corners = is_set(e, "align"),
                             .antialias = is_set(e, "antialias")};
  if (e.has("size")) options.size = extents_of(e, "size");
  else options.scale = numbers(e.attributes.at("scale"));
  return {interpolate(x[0], options)};
}

UnfoldOptions unfolding(const OracleCase& e) {
  return {extents_of(e, "stride"), extents_of(e, "pad"), extents_of(e, "dilation")};
}

Inputs sampled(const OracleCase& e, const Inputs& x) {
  const std::string& border = e.attributes.at("border");
  const GridSampleOptions options{
      .mode = e.attributes.at("mode") == "nearest" ? Interpolation::nearest : Interpolation::linear,
      .border = border == "zeros"    ? GridBorder::zeros
                : border == "border" ? GridBorder::border
                                     : GridBorder::reflection,
      .align_corners = is_set(e, "align")};
  return {grid_sample(x[0], x[1], options)};
}

TEST(Resample, AgreesWithTheOracles) {
  oracles::run_oracles(
      "resample.txt",
      {{"interpolate", interpolated},
       {"unfold", [](const OracleCase& e,
                     const Inputs& x) { return Inputs{unfold(x[0], extents_of(e, "window"), unfolding(e))}; }},
       {"fold",
        [](const OracleCase& e, const Inputs& x) {
          return Inputs{fold(x[0], extents_of(e, "size"), extents_of(e, "window"), unfolding(e))};
        }},
       {"affine_grid",
        [](const OracleCase& e, const Inputs& x) {
          return Inputs{affine_grid(x[0], extents_of(e, "size"), is_set(e, "align"))};
        }},
       {"grid_sample", sampled}});
}

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

TEST(Resample, HalvesAndMessages) {
  const Array x = ones({4, 4, 1, 1}, Float16);
  EXPECT_EQ(interpolate(x, {.scale = {2.0}}).dtype(), Float16);
  EXPECT_EQ(interpolate(x, {.scale = {2.5}}).shape(), (Shape{10, 10, 1, 1}));
  EXPECT_EQ(error_of([&] { interpolate(x, {}); }, ErrorKind::argument),
            "interpolate: either size or scale is given; got none; write {.size = {8, 8}}");
  error_of([&] { interpolate(x, {.size = 0}); }, ErrorKind::argument);
  error_of([&] { interpolate(x, {.scale = {0.1}}); }, ErrorKind::argument);
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

}  // namespace
}  // namespace rosin
