// Upsample and PixelShuffle: the examples of Flux and NNlib.
#include <rosin/upsample.hpp>

#include <gtest/gtest.h>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;

TEST(Upsample, NearestRepeatsElements) {
  const Array x = reshape(Array({1.0f, 2.0f, 3.0f, 4.0f}, {4}), {2, 2, 1, 1});
  expect_near(Upsample(2)(x), {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}, 0);
  EXPECT_EQ(Upsample({3, 1})(x).shape(), (Shape{6, 2, 1, 1}));
  EXPECT_EQ(Upsample(UpsampleMode::nearest, {.size = {5, 4}})(x).shape(), (Shape{5, 4, 1, 1}));
}

TEST(Upsample, LinearModesMapCornersToCorners) {
  const Array line({1.0f, 4.0f}, {2, 1, 1});
  expect_near(Upsample(UpsampleMode::linear, {.size = 4})(line), {1, 2, 3, 4}, 1e-6);
  const Array x = reshape(Array({1.0f, 2.0f, 3.0f, 4.0f}, {4}), {2, 2, 1, 1});
  expect_near(Upsample(UpsampleMode::bilinear, {.size = 3})(x), {1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4}, 1e-6);
  EXPECT_EQ(Upsample(2, UpsampleMode::trilinear)(ones({2, 3, 4, 1, 2})).shape(), (Shape{4, 6, 8, 1, 2}));
}

TEST(Upsample, GradientsAgreeWithFiniteDifferences) {
  layer_testing::check_layer_gradient(Upsample(2), randn({3, 2, 1, 2}), "nearest");
  layer_testing::check_layer_gradient(Upsample(2, UpsampleMode::bilinear), randn({3, 2, 1, 2}), "bilinear");
  layer_testing::check_layer_gradient(PixelShuffle(2), randn({3, 2, 4, 2}), "shuffle");
}

TEST(Upsample, PrintsAndRefuses) {
  EXPECT_EQ(to_string(Upsample(2)), "Upsample(:nearest, scale = 2)");
  EXPECT_EQ(to_string(Upsample(UpsampleMode::bilinear, {.size = {3, 4}})), "Upsample(:bilinear, size = (3, 4))");
  EXPECT_EQ(error_of([] { Upsample(UpsampleMode::nearest, {.scale = 2, .size = 3}); }),
            "Upsample: either scale or size should be specified (but not both); got both; write Upsample(2) to double "
            "sizes");
  EXPECT_EQ(error_of([] {
              Upsample(2, UpsampleMode::bilinear)(ones({2, 1, 1}));
            }),
            "layer Upsample(:bilinear, scale = 2) expects 2 spatial dims, but got 2×1×1 Array{Float32}; images are "
            "(spatial..., channels, batch)");
}

TEST(Upsample, TakesEmptyBatchesAndImagesAndRefusesWhatHasNoSize) {
  EXPECT_EQ(Upsample(2)(zeros({2, 3, 1, 0})).shape(), (Shape{4, 6, 1, 0}));
  EXPECT_EQ(Upsample(2, UpsampleMode::bilinear)(zeros({2, 3, 1, 0})).shape(), (Shape{4, 6, 1, 0}));
  EXPECT_EQ(Upsample(2)(zeros({0, 3, 1, 2})).shape(), (Shape{0, 6, 1, 2}));
  EXPECT_EQ(error_of([] {
              Upsample(UpsampleMode::nearest, {.size = 4})(zeros({0, 3, 1, 2}));
            }),
            "layer Upsample(:nearest, size = 4) makes images of at least 1 element in each dim out of such, but got "
            "0×3×1×2 Array{Float32}; give images with elements, and a positive scale or size");
  error_of([] { Upsample(0)(ones({2, 3, 1, 1})); });
  error_of([] { Upsample(-1)(ones({2, 3, 1, 1})); });
}

TEST(PixelShuffle, ComputesTheExampleOfFlux) {
  std::vector<double> x;
  for (int channel = 1; channel <= 4; ++channel) {
    for (int column = 1; column <= 2; ++column) {
      for (int row = 1; row <= 2; ++row) x.push_back(2 * row + column + channel / 10.0);
    }
  }
  const Array y = PixelShuffle(2)(Array(x, {2, 2, 4, 1}));
  ASSERT_EQ(y.shape(), (Shape{4, 4, 1, 1}));
  expect_near(transpose(reshape(y, {4, 4})),
              {3.1, 3.3, 4.1, 4.3, 3.2, 3.4, 4.2, 4.4, 5.1, 5.3, 6.1, 6.3, 5.2, 5.4, 6.2, 6.4}, 1e-12);
}

}  // namespace
}  // namespace rosin
