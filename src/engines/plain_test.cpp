// The plain definitions, and pooling, against values computed by PyTorch 2.15 in Float64 (conv2d, conv3d, max_pool2d,
// avg_pool2d on inputs padded by hand, and their gradients; times six where a mean would not be whole).
// Element i of a pattern (a, b, m) is (a * i + b) mod m - m / 2, so inputs and results are whole numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rosin/error.hpp>

#include "engines/plain.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

const std::vector<double> conv_y{
    8,   7,  20,  -5,  7,   33,  -1,  -1, -1,  6,   18,  37,  -5, -10, -22, 6,   17,  35, 1,   -19, -4,  -7,
    21,  0,  1,   -22, -17, 13,  -16, 11, -2,  -39, -20, 6,   -7, -13, -6,  -37, -19, 6,  -19, -37, 7,   -28,
    14,  8,  -25, 5,   16,  15,  -21, -2, 5,   -44, -25, 11,  5,  6,   -21, -41, 4,   35, 17,  -27, -22, -10,
    2,   18, -1,  -10, 17,  -12, 19,  1,  18,  15,  -20, 15,  10, 15,  13,  0,   17,  -1, 5,   20,  14,  30,
    6,   24, -4,  12,  0,   9,   5,   8,  -5,  -17, -22, 8,   2,  -11, -6,  -37, -19, 6,  -19, -37, 23,  -13,
    -7,  6,  -20, -39, -2,  -9,  -2,  2,  -22, 3,   -23, 20,  7,  4,   1,   -44, 4,   35, 17,  -27, -22, -10,
    0,   37, 18,  6,   -1,  -1,  4,   15, 5,   -16, 20,  -14, -8, 24,  14,  -11, 11,  33, 14,  19,  31,  6,
    19,  39, -1,  -1,  -1,  6,   18,  37, -12, 17,  -10, -1,  18, 2,   -12, -5,  -19, 19, -3,  24,  -10, -20,
    -16, -1, 17,  0,   -15, -15, -15, 7,  -16, 3,   7,   -17, 8,  4,   -12, 0};

const std::vector<double> conv_dx{
    5,   7,  -8, 9,   -6,  3,   -12, -12, -2,  -2, 9,   -8,  -8,  4,   10,  16,  -4,  -6, -4,  5,   10,  -10, -8,  -6,
    -8,  -4, 5,  -4,  16,  -13, 16,  10,  5,   7,  -8,  9,   -6,  3,   -12, -12, -2,  -2, 9,   -8,  -8,  4,   10,  16,
    15,  -1, -5, 5,   -17, 20,  -18, -6,  -10, -6, 2,   -10, 35,  -10, 29,  1,   0,   14, -11, 15,  -13, -10, -19, -17,
    -10, -1, -7, 0,   1,   -20, 5,   -13, 15,  -1, -5,  5,   -17, 20,  -18, -6,  -10, -6, 2,   -10, 35,  -10, 29,  1,
    7,   -4, 12, -2,  2,   16,  -7,  19,  -6,  5,  -3,  -5,  -9,  -10, 13,  -7,  6,   -6, -3,  7,   -5,  4,   -12, 2,
    -2,  -2, 9,  -8,  -8,  4,   10,  16,  -4,  -6, -4,  5,   10,  -10, -8,  -6,  9,   5,  -2,  -2,  -12, 16,  -6,  -8,
    5,   7,  -8, 9,   -6,  3,   -12, -12, -2,  -2, 9,   -8,  -8,  4,   10,  16,  -4,  -6, -4,  5,   10,  -10, -8,  -6,
    -10, -6, 2,  -10, 35,  -10, 29,  1,   0,   14, -11, 15,  -13, -10, -19, -17, 5,   -6, 21,  -10, -6,  20,  3,   35,
    15,  -1, -5, 5,   -17, 20,  -18, -6,  -10, -6, 2,   -10, 35,  -10, 29,  1,   0,   14, -11, 15,  -13, -10, -19, -17,
    -6,  5,  -3, -5,  -9,  -10, 13,  -7,  6,   -6, -3,  7,   -5,  4,   -12, 2,   -2,  -2, -3,  -6,  19,  3,   13,  -9};

const std::vector<double> conv_dw{
    9,  -12, 16,  -5, 9,   -11, -14, -27, 34, -17, 37, -5, -13, 13,  9,   -24, 21,  -5, -2, 12, -14, 21, -24, -17,
    -5, -2,  -13, 37, -17, -24, -15, 31,  -2, 9,   -5, 21, 34,  -18, -14, -8,  5,   -8, 16, 5,  9,   -8, -12, 19,
    -3, -15, 34,  12, 14,  -8,  -7,  -11, 16, -15, 14, -8, -15, 13,  -3,  -18, -12, 12, -5, -2, -7,  3,  5,   -15};

const std::vector<double> volume_y{-10, 76, -40, 0, 8, -42, 31, -40, -13, -3, -42, -15};

const std::vector<double> max_y{-2, 5,  1, -3, 4, 0, 5,  2, -2, 3, 4, 5, 5, 3, 5, 5, 5, 3, 2, 3, 5, 5, 2, 4, 4, 5, 5,
                                1,  -3, 4, 0,  5, 3, -2, 5, 1,  5, 2, 3, 5, 5, 2, 3, 4, 5, 5, 5, 2, 4, 5, 5, 5, 3, 5};

const std::vector<double> max_dx{
    -1, 2,  0, -2, 1, -1, 0, 0,  0,  0,  0,  -2, 2, 0,  0, 0,  0,  0, 1, 0, 0, 0, 0, 3, 0,  0, 0,  0,  0, 0,
    0,  0,  0, 0,  2, 0,  0, -1, 0,  0,  -2, 0,  0, 0,  0, -1, 0,  0, 0, 0, 0, 0, 0, 0, -2, 0, -1, 0,  0, -2,
    0,  0,  0, 0,  0, 0,  0, -1, 0,  0,  0,  0,  0, 1,  0, 0,  0,  0, 2, 0, 0, 1, 0, 0, 0,  0, 0,  0,  0, 2,
    0,  -2, 1, -1, 0, 0,  0, 0,  0,  -2, 3,  -1, 0, 0,  0, 0,  0,  0, 0, 0, 0, 3, 0, 0, 0,  0, 0,  0,  0, 0,
    0,  0,  1, 0,  0, 0,  0, 0,  -2, 0,  0,  2,  0, -1, 0, 0,  -2, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0,  -2, 0, 0,
    0,  0,  0, 0,  0, -3, 0, 0,  0,  0,  0,  0,  0, 0,  0, 0,  3,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  2,  0, 0};

const std::vector<double> mean_y_times_six{-5, 9,  1, -12, 9,  -3, 4,  3, -9, -2, 4,  -1, -1, -3, 6,  9,  -4, -6,
                                           -6, 0,  6, 4,   -9, 0,  3,  1, -1, 1,  -7, 7,  -3, -4, 6,  -9, 12, 0,
                                           -1, -6, 0, 6,   4,  -9, -6, 3, 1,  6,  1,  -4, 0,  9,  -4, -1, -3, 6};

const std::vector<double> mean_dx_times_six{
    -1, 2,  0,  -3, 3,  -1, -2, 1,  -1, 0,  1,  -3, 2,  0,  -2, 2,  0, -2, 1,  -1, 2,  1,  -3, 3,  0,  -2,
    1,  -1, 0,  1,  -1, 2,  0,  -1, 2,  0,  1,  -1, 2,  1,  -3, 3,  0, -2, 1,  -1, 0,  1,  -1, 2,  0,  -1,
    2,  0,  -2, 1,  -1, 0,  1,  -3, 2,  0,  -2, 3,  -1, 0,  1,  -1, 2, 1,  -1, 2,  -2, 1,  -1, 0,  1,  -3,
    2,  0,  -2, 3,  -1, 0,  1,  -1, 2,  1,  -1, 2,  0,  -2, 1,  -1, 0, 1,  -1, 2,  0,  -3, 3,  -1, -2, 1,
    -1, -2, 1,  -1, 2,  0,  -2, 3,  -1, 0,  1,  -1, 2,  1,  -3, 3,  0, -2, 1,  0,  -2, 1,  2,  0,  -2, 3,
    -1, 0,  1,  -1, 2,  1,  -3, 3,  0,  -2, 1,  0,  -2, 1,  -1, 2,  0, -3, 3,  -1, -2, 1,  -1, 0,  1,  -3,
    2,  0,  -2, 2,  0,  -2, -1, 2,  0,  -3, 3,  -1, -2, 1,  -1, 0,  1, -3, 2,  0,  -2, 2,  0,  -2};

const std::vector<double> product{-7, -13, 3, 20, 12, 4, -16, 2, -2, 25, -8, -8};

std::vector<double> pattern(size_t count, int64_t a, int64_t b, int64_t m) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>((static_cast<int64_t>(i) * a + b) % m - m / 2));
  return values;
}

/// Images 6 x 5 with 4 channels, two groups, kernel 3 x 2, stride 2 x 1, dilation 1 x 2, padding (1, 2) and (0, 1).
ConvSpec grouped_conv(ConvKind kind) {
  ConvSpec spec;
  spec.kind = kind;
  spec.type = DType::Float64;
  spec.batch = 2;
  spec.in_channels = 4;
  spec.out_channels = 6;
  spec.groups = 2;
  spec.in[0] = 6, spec.in[1] = 5;
  spec.out[0] = 4, spec.out[1] = 4;
  spec.kernel[0] = 3, spec.kernel[1] = 2;
  spec.stride[0] = 2;
  spec.dilation[1] = 2;
  spec.pad_low[0] = 1, spec.pad_high[0] = 2, spec.pad_high[1] = 1;
  return spec;
}

const std::vector<double> conv_x = pattern(240, 7, 3, 11), conv_w = pattern(72, 5, 2, 7),
                          conv_dy = pattern(192, 3, 1, 5);

TEST(PlainMatmul, AgreesWithPyTorch) {
  MatmulSpec spec;
  spec.m = spec.lda = spec.ldc = 3;
  spec.n = 4;
  spec.k = spec.ldb = 5;
  std::vector<double> c(12);
  plain_matmul<double>(spec, 0, 1, 0, 4, pattern(15, 7, 3, 11).data(), pattern(20, 5, 2, 7).data(), nullptr, c.data());
  EXPECT_EQ(c, product);
}

TEST(PlainConv, ForwardAgreesWithPyTorch) {
  std::vector<double> y(conv_y.size());
  plain_conv_forward<double>(grouped_conv(ConvKind::forward), 0, 2, conv_x.data(), conv_w.data(), nullptr, y.data());
  EXPECT_EQ(y, conv_y);
}

TEST(PlainConv, TheGradientOfTheInputAgreesWithPyTorch) {
  std::vector<double> dx(conv_dx.size());
  plain_conv_backward_data<double>(grouped_conv(ConvKind::backward_data), 0, 2, conv_dy.data(), conv_w.data(),
                                   dx.data());
  EXPECT_EQ(dx, conv_dx);
}

TEST(PlainConv, TheGradientOfTheWeightsAgreesWithPyTorch) {
  std::vector<double> dw(conv_dw.size());
  plain_conv_backward_weights<double>(grouped_conv(ConvKind::backward_weights), 0, 6, conv_x.data(), conv_dy.data(),
                                      dw.data());
  EXPECT_EQ(dw, conv_dw);
}

TEST(PlainConv, VolumesAgreeWithPyTorch) {
  ConvSpec spec;
  spec.spatial = 3;
  spec.in_channels = 2;
  spec.in[0] = 4, spec.in[1] = 3, spec.in[2] = 3;
  spec.out[0] = 3, spec.out[1] = 2, spec.out[2] = 2;
  spec.kernel[0] = 3, spec.kernel[1] = 2, spec.kernel[2] = 2;
  spec.pad_low[0] = 1;
  std::vector<double> y(volume_y.size());
  plain_conv_forward<double>(spec, 0, 1, pattern(72, 7, 3, 11).data(), pattern(24, 5, 2, 7).data(), nullptr, y.data());
  EXPECT_EQ(y, volume_y);
}

/// Images 6 x 5 with 3 channels, window 3 x 2, stride 2, padding 1 below.
PoolSpec overlapping_pool(PoolKind kind, DType type) {
  PoolSpec spec;
  spec.kind = kind;
  spec.type = type;
  spec.batch = 2;
  spec.channels = 3;
  spec.in[0] = 6, spec.in[1] = 5;
  spec.out[0] = 3, spec.out[1] = 3;
  spec.kernel[0] = 3, spec.kernel[1] = 2;
  spec.stride[0] = spec.stride[1] = 2;
  spec.pad_low[0] = spec.pad_low[1] = 1;
  return spec;
}

template <class T> std::vector<T> typed(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <class T> void check_pools(DType type) {
  const std::vector<T> x = typed<T>(pattern(180, 7, 3, 11)), dy = typed<T>(pattern(max_y.size(), 3, 1, 5));
  std::vector<T> y(max_y.size()), dx(max_dx.size(), T(5));
  execute(*prepare_pool(overlapping_pool(PoolKind::max_forward, type)),
          {x.data(), nullptr, nullptr, y.data(), nullptr});
  EXPECT_EQ(y, typed<T>(max_y));
  execute(*prepare_pool(overlapping_pool(PoolKind::max_backward, type)),
          {x.data(), y.data(), dy.data(), dx.data(), nullptr});
  EXPECT_EQ(dx, typed<T>(max_dx));
  execute(*prepare_pool(overlapping_pool(PoolKind::mean_forward, type)),
          {x.data(), nullptr, nullptr, y.data(), nullptr});
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i] * 6, mean_y_times_six[i], 1e-5);
  execute(*prepare_pool(overlapping_pool(PoolKind::mean_backward, type)),
          {dy.data(), nullptr, nullptr, dx.data(), nullptr});
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i] * 6, mean_dx_times_six[i], 1e-5);
}

TEST(Pooling, AgreesWithPyTorchInFloat32) { check_pools<float>(DType::Float32); }

TEST(Pooling, AgreesWithPyTorchInFloat64) { check_pools<double>(DType::Float64); }

TEST(Pooling, ManyChannelsAgreeWithOneByOne) {
  for (PoolKind kind : {PoolKind::max_forward, PoolKind::mean_forward}) {
    PoolSpec spec = overlapping_pool(kind, DType::Float32);
    spec.stride[0] = 3, spec.out[0] = 2;  // windows side by side
    const std::vector<double> one = pattern(30, 7, 3, 11);
    std::vector<std::vector<float>> results;
    for (int64_t channels : {1, 37}) {
      spec.batch = 1;
      spec.channels = channels;
      std::vector<float> x, y(static_cast<size_t>(6 * channels));
      for (double value : one) x.insert(x.end(), static_cast<size_t>(channels), static_cast<float>(value));
      execute(*prepare_pool(spec), {x.data(), nullptr, nullptr, y.data(), nullptr});
      results.push_back(y);
    }
    for (size_t i = 0; i < results[1].size(); ++i) EXPECT_EQ(results[1][i], results[0][i / 37]);
  }
}

TEST(Pooling, TiesSendTheGradientToTheFirstElementOnly) {
  PoolSpec spec;
  spec.kind = PoolKind::max_backward;
  spec.in[0] = 4, spec.in[1] = 2;
  spec.out[0] = 2, spec.out[1] = 1;
  spec.kernel[0] = spec.kernel[1] = spec.stride[0] = spec.stride[1] = 2;
  const std::vector<float> x{1, 2, 3, 3, 2, 2, 3, 3}, y{2, 3}, dy{10, 20};
  std::vector<float> dx(8, 9.0f);
  execute(*prepare_pool(spec), {x.data(), y.data(), dy.data(), dx.data(), nullptr});
  EXPECT_EQ(dx, (std::vector<float>{0, 10, 20, 0, 0, 0, 0, 0}));
}

TEST(Pooling, MaxPassesNaNOnAndPadsWithTheLowestFiniteValue) {
  PoolSpec spec;
  spec.in[0] = 3;
  spec.out[0] = 3;
  spec.kernel[0] = 2;
  spec.pad_low[0] = 2;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{nan, 1, 2};
  std::vector<float> y(3);
  execute(*prepare_pool(spec), {x.data(), nullptr, nullptr, y.data(), nullptr});
  EXPECT_EQ(y[0], std::numeric_limits<float>::lowest());
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST(Pooling, IntegersAreRefused) {
  PoolSpec spec;
  spec.type = DType::Int32;
  EXPECT_THROW(prepare_pool(spec), Error);
}

}  // namespace
}  // namespace rosin::engines
