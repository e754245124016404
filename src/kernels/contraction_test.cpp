// Kernels of matmul, convolution and pooling against the CPU, which is tested against oracles made elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

class Contractions : public testing::Test {
 protected:
  Rng rng{7};

  /// Random numbers; where `whole`, or for integers, small whole ones, whose sums of products are exact.
  Array drawn(const Shape& shape, DType type = DType::Float32, bool whole = false) {
    const Array x = randn(rng, shape);
    Array y = cast(whole || !is_float(type) ? round(x * 3) : x, type);
    eval(y);
    return y;
  }

  /// f evaluated by kernels equals f evaluated by the CPU.
  template <class F> void expect_same(F&& f, double tolerance = 2e-6, bool far = false) {
    const Array by_cpu = f();
    eval();
    InterpretedExecutor executor;
    executor.far = far;
    const Array made = by_kernels(f, executor);
    ASSERT_EQ(executor.codes.empty(), made.count() == 0);
    ASSERT_EQ(made.shape(), by_cpu.shape());
    ASSERT_EQ(made.dtype(), by_cpu.dtype());
    const std::vector<double> expected = by_cpu.to_vector<double>(), values = made.to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(expected[i]) || std::isinf(expected[i])) {
        EXPECT_EQ(std::isnan(values[i]), std::isnan(expected[i])) << i;
        EXPECT_TRUE(std::isnan(expected[i]) || values[i] == expected[i]) << i;
      } else {
        ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
      }
    }
  }

  static std::map<std::string, KernelCode> codes(const std::function<Array()>& f) {
    InterpretedExecutor executor;
    by_kernels(f, executor);
    return executor.codes;
  }
};

constexpr double half_tolerance = 2e-3, brain_tolerance = 1.6e-2;

TEST_F(Contractions, ProductsOfOddSizesAreThoseOfTheCpu) {
  const int64_t sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {17, 19, 23}, {1, 31, 9}, {33, 1, 40}, {64, 64, 64}, {50, 70, 1}};
  for (const auto& [m, n, k] : sizes) {
    const Array a = drawn({m, k}), b = drawn({k, n});
    expect_same([&] { return matmul(a, b); }, 1e-5);
  }
}

TEST_F(Contractions, AnArrayIsMultipliedByItself) {
  const Array a = drawn({20, 20});
  expect_same([&] { return matmul(a, a); }, 1e-5);
}

TEST_F(Contractions, LargeProductsUseLargerSquares) {
  // 8 x 8 squares of 32, and of 64.
  for (const int64_t size : {250, 500}) {
    const Array a = drawn({size, 20}), b = drawn({20, size + 3});
    expect_same([&] { return matmul(a, b); }, 1e-5);
    expect_same([&] { return matmul(transpose(b), transpose(a)); }, 1e-5);
  }
  const Array a = drawn({500, 20}, DType::Float64), b = drawn({20, 500}, DType::Float64);
  expect_same([&] { return matmul(a, b); }, 1e-14);
}

TEST_F(Contractions, ProductsOfEveryTypeAreThoseOfTheCpu) {
  for (const DType type :
       {DType::Int32, DType::UInt32, DType::Int64, DType::UInt64, DType::Float16, DType::BFloat16, DType::Float64}) {
    const Array a = drawn({13, 21}, type, true), b = drawn({21, 18}, type, true);
    expect_same([&] { return matmul(a, b); }, 0);
  }
  const Array a = drawn({9, 40}, DType::Float16), b = drawn({40, 5}, DType::Float16);
  expect_same([&] { return matmul(a, b); }, half_tolerance);
  const Array large = cast(drawn({4, 30}, DType::Int32) * 100000003, DType::Int32);
  expect_same([&] { return matmul(large, transpose(large)); },
              0);  // wraps around
}

TEST_F(Contractions, ViewsAreMultipliedWhereTheyStand) {
  const Array a = drawn({12, 17}), b = drawn({12, 9}), row = drawn({1, 17});
  expect_same([&] { return matmul(transpose(a), b); });
  expect_same([&] { return matmul(transpose(b), a); });
  expect_same([&] { return matmul(transpose(slice(b, 0, 2, 9)), slice(a, 0, 3, 10)); });
  expect_same([&] { return matmul(expand(row, {5, 17}), transpose(a)); });
  expect_same([&] { return matmul(a, transpose(expand(row, {5, 17}))); });
  expect_same([&] { return matmul(flip(transpose(a), 1), flip(b, 0)); });
}

TEST_F(Contractions, BatchesBroadcast) {
  const Array a = drawn({5, 7, 3}), b = drawn({7, 4, 3}), one = drawn({7, 4, 1}), flat = drawn({7, 4});
  const Array many = drawn({5, 7, 3, 2}), last = drawn({7, 4, 1, 2});
  expect_same([&] { return matmul(a, b); });
  expect_same([&] { return matmul(a, one); });
  expect_same([&] { return matmul(a, flat); });
  expect_same([&] { return matmul(many, last); });
  expect_same([&] { return matmul(many, b); });
  expect_same([&] { return matmul(slice(many, 3, 1, 2), permute(many, {1, 0, 2, 3})); });
}

TEST_F(Contractions, VectorsAreMatricesOfOneColumnOrRow) {
  const Array a = drawn({30, 20}), v = drawn({20}), u = drawn({30}), stack = drawn({20, 3, 2});
  expect_same([&] { return matmul(a, v); });
  expect_same([&] { return matmul(u, a); });
  expect_same([&] { return matmul(v, v); });
  expect_same([&] { return matmul(a, stack); });
}

TEST_F(Contractions, ALongSumIsSharedByAGroup) {
  const Array a = drawn({3, 5000}), b = drawn({5000, 2}), v = drawn({3, 1501, 2}, DType::Int32),
              w = drawn({1501, 2, 1}, DType::Int32);
  expect_same([&] { return matmul(a, b); }, 2e-5);
  expect_same([&] { return matmul(v, w); }, 0);
}

TEST_F(Contractions, EmptyProductsAreEmptyOrZero) {
  const Array a = drawn({3, 0}), b = drawn({0, 4}), c = drawn({4, 2});
  expect_same([&] { return matmul(a, b); }, 0);
  expect_same([&] { return matmul(b, c); }, 0);
}

TEST_F(Contractions, ANewBatchSizeHasTheSameCode) {
  const Array w = drawn({11, 23}), x = drawn({23, 5}), more = drawn({23, 17});
  EXPECT_EQ(codes([&] { return matmul(w, x); }), codes([&] { return matmul(w, more); }));
  const Array kernels = drawn({3, 3, 2, 5}), images = drawn({8, 9, 2, 3}), larger = drawn({11, 7, 2, 6});
  const auto convolved = [&](const Array& i) {
    return codes([&] { return conv(i, kernels, {.stride = 2, .pad = 1}); });
  };
  EXPECT_EQ(convolved(images), convolved(larger));
  const auto pooled = [&](const Array& i) { return codes([&] { return maxpool(i, 3, 2, 1); }); };
  EXPECT_EQ(pooled(images), pooled(larger));
}

struct Case {
  Shape x, w;
  ConvOptions options;
};

std::vector<Case> cases() {
  return {{{9, 3, 2}, {3, 3, 4}, {}},
          {{11, 4, 3}, {4, 2, 6}, {.stride = 2, .pad = {1, 2}, .dilation = 2, .groups = 2}},
          {{7, 6, 3, 2}, {3, 2, 3, 5}, {}},
          {{7, 6, 3, 2}, {3, 3, 3, 5}, {.stride = {2, 1}, .pad = {1, 0, 2, 1}}},
          {{8, 7, 4, 2}, {2, 3, 2, 4}, {.dilation = {2, 1}, .groups = 2}},
          {{9, 9, 4, 2}, {3, 3, 1, 4}, {.pad = 2, .dilation = 2, .groups = 4}},
          {{10, 9, 2, 3}, {3, 2, 2, 7}, {.stride = {3, 2}, .pad = {0, 2, 1, 0}, .dilation = {3, 2}}},
          {{5, 4, 6, 2, 2}, {2, 3, 2, 2, 3}, {.stride = {1, 2, 1}, .pad = {0, 1, 1}}},
          {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{6, 6, 16, 3}, {1, 1, 16, 9}, {}},
          {{2, 2, 1, 1}, {3, 3, 1, 2}, {.stride = 4, .pad = {4, 5}}}};
}

TEST_F(Contractions, ConvolutionsOfEveryKindAreThoseOfTheCpu) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    const Array x = drawn(c.x), w = drawn(c.w);
    expect_same([&] { return conv(x, w, c.options); }, 1e-5);
    expect_same([&] { return crosscor(x, w, c.options); }, 1e-5);
  }
}

/// sum(f(x) * v) by x alone: the op's gradient with dy = v.
template <class F> Array adjoint(F&& f, const Array& x, const Array& v) {
  return gradient([&](const Array& y) { return sum(f(y) * v); }, x);
}

TEST_F(Contractions, GradientsOfConvolutionsAreThoseOfTheCpu) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(to_string(c.x) + " " + to_string(c.w));
    const Array x = drawn(c.x), w = drawn(c.w);
    for (const bool flipped : {true, false}) {
      const auto f = [&](const Array& a, const Array& b) {
        return flipped ? conv(a, b, c.options) : crosscor(a, b, c.options);
      };
      const Array v = drawn(f(x, w).shape());
      expect_same([&] { return adjoint([&](const Array& a) { return f(a, w); }, x, v); }, 1e-5);
      expect_same([&] { return adjoint([&](const Array& b) { return f(x, b); }, w, v); }, 1e-5);
    }
  }
}

TEST_F(Contractions, ConvolutionsOfOtherTypesAreThoseOfTheCpu) {
  for (const DType type : {DType::Float16, DType::BFloat16, DType::Float64}) {
    const double tolerance = type == DType::Float64 ? 1e-14 : type == DType::Float16 ? half_tolerance : brain_tolerance;
    const Array x = drawn({9, 8, 3, 2}, type), w = drawn({3, 3, 3, 4}, type), v = drawn({7, 6, 4, 2}, type);
    expect_same([&] { return conv(x, w); }, tolerance);
    expect_same([&] { return adjoint([&](const Array& a) { return conv(a, w); }, x, v); }, tolerance);
    expect_same([&] { return adjoint([&](const Array& b) { return conv(x, b); }, w, v); }, tolerance);
  }
}

TEST_F(Contractions, TransposedConvolutionsAreThoseOfTheCpu) {
  const Array x = drawn({5, 4, 3, 2}), w = drawn({3, 3, 2, 3});
  expect_same([&] { return conv_transpose(x, w, {.stride = 2, .pad = 1}, 1); });
  expect_same([&] { return conv_transpose(x, w, {.dilation = {2, 1}}); });
}

TEST_F(Contractions, ABatchOfNoImagesGivesNone) {
  const Array x = drawn({5, 4, 3, 0}), w = drawn({3, 3, 3, 2});
  expect_same([&] { return conv(x, w); }, 0);
  expect_same([&] { return maxpool(x, 2); }, 0);
}

struct PoolCase {
  Shape x;
  Extents window, stride, pad;
};

std::vector<PoolCase> pool_cases() {
  return {{{9, 2, 3}, 3, 2, 1},
          {{8, 6, 3, 2}, 2, 2, 0},
          {{7, 9, 2, 2}, {3, 2}, {1, 2}, {1, 0, 2, 1}},
          {{7, 7, 1, 2}, 3, 1, 0},
          {{5, 6, 4, 2, 2}, {2, 3, 2}, 2, {0, 1, 1}},
          {{1, 1, 1, 1}, 1, 1, 0},
          {{5, 5, 2, 1}, {1, 2}, {3, 4}, 0},
          {{3, 3, 1, 1}, 2, 3, {2, 3}}};
}

TEST_F(Contractions, PoolsOfEveryKindAreThoseOfTheCpu) {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16}) {
    for (const PoolCase& c : pool_cases()) {
      SCOPED_TRACE(to_string(c.x) + " " + to_string(type));
      const Array x = drawn(c.x, type);
      const double tolerance = type == DType::Float16 ? 1e-3 : 1e-6;
      const auto largest = [&](const Array& a) { return maxpool(a, c.window, c.stride, c.pad); };
      const auto average = [&](const Array& a) { return meanpool(a, c.window, c.stride, c.pad); };
      expect_same([&] { return largest(x); }, 0);
      expect_same([&] { return average(x); }, tolerance);
      const Array v = drawn(largest(x).shape(), type);
      expect_same([&] { return adjoint(largest, x, v); }, tolerance);
      expect_same([&] { return adjoint(average, x, v); }, tolerance);
    }
  }
}

TEST_F(Contractions, OfEqualElementsTheFirstGetsTheGradient) {
  for (const PoolCase& c : pool_cases()) {
    SCOPED_TRACE(to_string(c.x));
    const Array x = drawn(c.x, DType::Float32, true);  // few different values
    const auto largest = [&](const Array& a) { return maxpool(a, c.window, c.stride, c.pad); };
    const Array v = drawn(largest(x).shape());
    expect_same([&] { return adjoint(largest, x, v); }, 1e-6);
  }
}

TEST_F(Contractions, PoolsOfIntegersCompareAsTheirTypeDoes) {
  for (const DType type :
       {DType::Int8, DType::UInt8, DType::Int16, DType::Int32, DType::UInt32, DType::Int64, DType::UInt64}) {
    const Array x = drawn({6, 5, 2, 2},
                          type);  // negative numbers become large ones of unsigned types
    expect_same([&] { return maxpool(x, 3, 2, 1); }, 0);
  }
}

TEST_F(Contractions, AdaptivePoolsAreThoseOfTheCpu) {
  const Array x = drawn({11, 7, 2, 3});
  expect_same([&] { return adaptive_maxpool(x, {3, 2}); }, 0);
  expect_same([&] { return adaptive_meanpool(x, {3, 7}); });
}

TEST_F(Contractions, PoolsWithStepsAreThoseOfTheCpu) {
  const WindowOptions steps{.dilation = {2, 3}, .ceil = true};
  const Extents window = {3, 2}, stride = {2, 1}, pad = {1, 0};
  const auto largest = [&](const Array& a) { return maxpool(a, window, stride, pad, steps); };
  const auto means = [&](const Array& a) {
    return meanpool(a, window, stride, pad, {.dilation = {2, 3}, .ceil = true, .count_pad = false});
  };
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16}) {
    const Array x = drawn({10, 9, 2, 3}, type, true), v = drawn(largest(x).shape(), type);
    expect_same([&] { return largest(x); }, 0);
    expect_same([&] { return maxpool_with_indices(x, window, stride, pad, steps).indices; }, 0);
    expect_same([&] { return adjoint(largest, x, v); }, 1e-6);
    expect_same([&] { return means(x); }, type == DType::Float16 ? 1e-3 : 1e-6);
    expect_same([&] { return adjoint(means, x, v); }, type == DType::Float16 ? 2e-3 : 1e-6);
  }
}

TEST_F(Contractions, PicksFollowTheFirstLargestElement) {
  // The gradient of the gradient, by dy, is a pick.
  for (const DType type : {DType::Float64, DType::Float16}) {
    for (const PoolCase& c : pool_cases()) {
      SCOPED_TRACE(to_string(c.x));
      const Array x = drawn(c.x, type, true), u = drawn(c.x, type);
      const auto largest = [&](const Array& a) { return maxpool(a, c.window, c.stride, c.pad); };
      const Array v = drawn(largest(x).shape(), type);
      expect_same([&] { return adjoint([&](const Array& w) { return adjoint(largest, x, w); }, v, u); }, 1e-6);
    }
  }
}

TEST_F(Contractions, NaNAndInfinityInWindowsAreThoseOfTheCpu) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), low = -std::numeric_limits<float>::infinity();
  const Array x = cast(Array({low, low, 1.0f, nan, nan, 2.0f, low, low}, {8, 1, 1}), DType::Float16);
  const Array v = cast(drawn({4, 1, 1}), DType::Float16), u = cast(drawn({5, 1, 1}), DType::Float16);
  eval();
  expect_same([&] { return maxpool(x, 2); }, 0);
  expect_same([&] { return maxpool(x, 2, 2, 1); }, 0);
  expect_same([&] { return adjoint([](const Array& a) { return maxpool(a, 2); }, x, v); }, 0);
  expect_same([&] { return adjoint([](const Array& a) { return maxpool(a, 2, 2, 1); }, x, u); }, 0);
}

TEST_F(Contractions, ElementsBeyondInt32AreCountedInInt64) {
  const Array a = drawn({20, 33}), b = drawn({33, 18}), v = drawn({2000}), x = drawn({7, 6, 4, 2}),
              w = drawn({3, 2, 2, 6});
  const auto convolved = [](const Array& i, const Array& k) { return conv(i, k, {.pad = 1, .groups = 2}); };
  const auto largest = [](const Array& i) { return maxpool(i, 3, 2, 1); };
  const Array dy = drawn(convolved(x, w).shape()), dm = drawn(largest(x).shape());
  expect_same([&] { return matmul(a, b); }, 1e-5, true);
  expect_same([&] { return matmul(transpose(b), transpose(a)); }, 1e-5, true);
  expect_same([&] { return matmul(v, v); }, 1e-5, true);
  expect_same([&] { return convolved(x, w); }, 1e-5, true);
  expect_same([&] { return adjoint([&](const Array& i) { return convolved(i, w); }, x, dy); }, 1e-5, true);
  expect_same([&] { return adjoint([&](const Array& k) { return convolved(x, k); }, w, dy); }, 1e-5, true);
  expect_same([&] { return largest(x); }, 0, true);
  expect_same([&] { return adjoint(largest, x, dm); }, 1e-6, true);
}

/// x with a value that is not finite at one place.
Array spoilt(const Array& x, int64_t place, double value) {
  std::vector<double> values = x.to_vector<double>();
  values[static_cast<size_t>(place)] = value;
  return cast(Array(values, x.shape()), x.dtype());
}

/// f of two operands, of which either has Inf or NaN, at every `step`th place.
template <class F> void at_each_place(const Array& a, const Array& b, int64_t step, F&& f) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (int64_t place = 0; place < a.count(); place += step) f(spoilt(a, place, bad), b);
    for (int64_t place = 0; place < b.count(); place += step) f(a, spoilt(b, place, bad));
  }
}

TEST_F(Contractions, WhatIsNotFiniteReachesWhatReadsItAlone) {
  const Array a = drawn({17, 5}), b = drawn({5, 18}), bits = drawn({3, 1030}), more = drawn({1030, 2});
  at_each_place(a, b, 11, [&](const Array& x, const Array& y) { expect_same([&] { return matmul(x, y); }, 1e-5); });
  at_each_place(bits, more, 991,
                [&](const Array& x, const Array& y) { expect_same([&] { return matmul(x, y); }, 1e-4); });
  struct Form {
    Shape x, w;
    ConvOptions options;
  };
  for (const Form& c : {Form{{5, 4, 2, 2}, {3, 2, 2, 5}, {.pad = 1}}, Form{{6, 5, 4, 1}, {2, 2, 2, 6}, {.groups = 2}},
                        Form{{7, 6, 1, 1}, {3, 2, 1, 2}, {.stride = 2, .pad = {1, 1}, .dilation = 2}}}) {
    const Array x = drawn(c.x), w = drawn(c.w);
    at_each_place(x, w, 7, [&](const Array& images, const Array& kernels) {
      expect_same([&] { return conv(images, kernels, c.options); }, 1e-5);
    });
    const Array dy = drawn(conv(x, w, c.options).shape());
    const auto slopes = [&](const Array& images, const Array& kernels, const Array& factors, int which) {
      const auto loss = [&](const Array& i, const Array& k) { return sum(conv(i, k, c.options) * factors); };
      const auto [by_image, by_kernel] = gradient(loss, images, kernels);
      return which == 0 ? by_image : by_kernel;
    };
    at_each_place(w, dy, 7,
                  [&](const Array& k, const Array& d) { expect_same([&] { return slopes(x, k, d, 0); }, 1e-5); });
    at_each_place(x, dy, 7,
                  [&](const Array& i, const Array& d) { expect_same([&] { return slopes(i, w, d, 1); }, 1e-5); });
  }
  const Array image = drawn({6, 5, 2, 1}), beside = drawn({6, 5, 2, 1});
  at_each_place(image, beside, 5, [&](const Array& x, const Array& factors) {
    expect_same([&] { return maxpool(x * factors, {3, 2}, 1); }, 1e-5);
    expect_same([&] { return meanpool(x * factors, {3, 2}, {2, 1}, {1, 0}); }, 1e-5);
    expect_same([&] { return gradient([&](const Array& i) { return sum(maxpool(i, 2) * 3.0f); }, x * factors); }, 1e-5);
  });
}

}  // namespace
}  // namespace rosin::kernels
