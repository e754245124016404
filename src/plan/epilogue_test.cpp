// Epilogues of calls: what joins a call, and that it changes no bit: the same ops give the same bits where what stands
// between them is held, and so computed apart.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <rosin/activation.hpp>
#include <rosin/conv.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

using Op = Array (*)(const Array&);

/// The sign and payload of a NaN mean nothing.
template <class T> bool same_elements(const std::vector<T>& x, const std::vector<T>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0 || (std::isnan(a) && std::isnan(b)); });
}

bool same_bits(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  if (a.dtype() == Float64) return same_elements(a.to_vector<double>(), b.to_vector<double>());
  return same_elements(a.to_vector<float>(), b.to_vector<float>());  // exact of halves
}

/// product() + bias + residual (each where there is one) and then the activation, in one evaluation. `apart`: all that
/// stands between is held.
template <class F> Array chain(F&& product, const Array& bias, const Array& residual, Op activation, bool apart) {
  std::vector<Array> held;
  Array y = product();
  const auto then = [&](Array next) {
    if (apart) held.push_back(y);
    y = std::move(next);
  };
  if (!bias.is_nothing()) then(y + bias);
  if (!residual.is_nothing()) then(y + residual);
  if (activation) then(activation(y));
  eval();
  return y;
}

/// Of an array with a number for each channel of images.
Shape one_each_channel(int rank, int64_t channels) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[sizes.size() - 2] = channels;
  return Shape(std::span<const int64_t>(sizes));
}

constexpr Op activations[] = {nullptr, relu, relu6, sigmoid, tanh, gelu};

template <class F>
void expect_same_bits(F&& product, const Array& bias, const Array& residual, const std::string& what) {
  eval();
  for (const Op activation : activations) {
    for (int form = 1; form < 4; ++form) {
      const Array b = form & 1 ? bias : Array(), r = form & 2 ? residual : Array();
      for (const int threads : {1, 3}) {
        set_num_threads(threads);
        const Array joined = chain(product, b, r, activation, false);
        EXPECT_TRUE(same_bits(joined, chain(product, b, r, activation, true)))
            << what << ", form " << form << ", " << threads << " threads";
      }
    }
  }
  set_num_threads(0);
}

TEST(Epilogue, ProductsHaveTheSameBits) {
  seed(1);
  constexpr int64_t sizes[][3] = {{1, 1, 1},     {8, 200, 24}, {3, 5, 7},       {64, 64, 64}, {10, 128, 256},
                                  {33, 70, 300}, {5, 1, 4000}, {256, 128, 784}, {1, 40, 9},   {130, 1, 20}};
  for (const auto& [m, n, k] : sizes) {
    for (const DType type : {Float32, Float64}) {
      const Array a = normal({m, k}, 0, 1, type), b = normal({k, n}, 0, 1, type), ta = normal({k, m}, 0, 1, type),
                  tb = normal({n, k}, 0, 1, type);
      const Array bias = normal({m}, 0, 1, type), residual = normal({m, n}, 0, 1, type);
      const std::string what = to_string(type) + to_string(Shape{m, n, k});
      expect_same_bits([&] { return matmul(a, b); }, bias, residual, what);
      expect_same_bits([&] { return matmul(transpose(ta), b); }, bias, residual, what + " a transposed");
      expect_same_bits([&] { return matmul(a, transpose(tb)); }, bias, residual, what + " b transposed");
    }
  }
}

TEST(Epilogue, BatchesOfProductsHaveTheSameBits) {
  seed(2);
  const Array a = randn({6, 5, 3}), b = randn({5, 4, 3}), one = randn({6, 5, 1});
  const Array bias = randn({6}), residual = randn({6, 4, 3});
  expect_same_bits([&] { return matmul(a, b); }, bias, residual, "batch");
  expect_same_bits([&] { return matmul(one, b); }, bias, residual, "batch of one matrix");
}

TEST(Epilogue, ConvolutionsHaveTheSameBits) {
  seed(3);
  struct Case {
    Shape x, w;
    int64_t pad;
  };
  for (const auto& [x_shape, w_shape, pad] :
       {Case{{9, 8, 1, 5}, {3, 3, 1, 6}, 0}, Case{{12, 12, 6, 3}, {5, 5, 6, 16}, 2},
        Case{{7, 7, 32, 4}, {3, 3, 32, 48}, 1}, Case{{20, 3, 2}, {4, 3, 5}, 1}}) {
    for (const DType type : {Float32, Float64}) {
      const Array x = normal(x_shape, 0, 1, type), w = normal(w_shape, 0, 1, type);
      const Array bias = normal(one_each_channel(x_shape.rank(), w_shape[-1]), 0, 1, type);
      const ConvOptions options{.pad = {pad}};
      const Array residual = normal(conv(x, w, options).shape(), 0, 1, type);
      expect_same_bits([&] { return conv(x, w, options); }, bias, residual, to_string(type) + to_string(x_shape));
    }
  }
}

/// What a BatchNorm does with running statistics, and parts of it: written out, each joined and apart.
TEST(Epilogue, StepsOfChannelsHaveTheSameBits) {
  seed(9);
  struct Case {
    Shape x, w;
    int64_t pad, groups;
  };
  for (const auto& [x_shape, w_shape, pad, groups] :
       {Case{{12, 12, 6, 3}, {5, 5, 6, 16}, 2, 1}, Case{{14, 9, 32, 2}, {3, 3, 32, 48}, 1, 1},
        Case{{20, 17, 8, 2}, {3, 3, 1, 8}, 1, 8}, Case{{9, 8, 24, 1}, {1, 1, 24, 40}, 0, 1},
        Case{{20, 3, 2}, {4, 3, 5}, 1, 1}, Case{{6, 5, 4, 3, 2}, {3, 3, 3, 3, 7}, 1, 1}}) {
    for (const DType type : {Float32, Float64, BFloat16, Float16}) {
      const Array x = normal(x_shape, 0, 1, type), w = normal(w_shape, 0, 1, type);
      const ConvOptions options{.pad = {pad}, .groups = groups};
      const Shape y_shape = conv(x, w, options).shape();
      const Shape channels = one_each_channel(y_shape.rank(), y_shape[-2]);
      const Array center = normal(channels, 0, 1, type), factor = normal(channels, 0, 1, type);
      const Array bias = normal(channels, 0, 1, type), shift = normal(channels, 0, 1, type);
      const Array residual = normal(y_shape, 0, 1, type);
      eval();
      for (const Op activation : {Op{}, Op{relu}, Op{tanh}}) {
        for (int form = 1; form < 32; ++form) {
          const auto made = [&](bool apart) {
            std::vector<Array> held{conv(x, w, options)};
            const auto then = [&](int part, auto&& step) {
              if ((form & part) != 0) held.push_back(step(held.back()));
            };
            then(1, [&](const Array& y) { return y + bias; });
            then(2, [&](const Array& y) { return y - center; });
            then(4, [&](const Array& y) { return form & 1 ? y * factor : factor * y; });
            then(8, [&](const Array& y) { return y + shift; });
            then(16, [&](const Array& y) { return y + residual; });
            Array y = activation ? activation(held.back()) : held.back();
            if (!apart) held.clear();
            eval();
            return y;
          };
          EXPECT_TRUE(same_bits(made(false), made(true))) << to_string(type) << to_string(x_shape) << ", form " << form
                                                          << ", activation " << (activation != nullptr);
        }
      }
    }
  }
}

/// But for its factor, which a kernel makes of the statistics; a layer that is trained needs what is before its own.
TEST(Epilogue, ABatchNormWithRunningStatisticsJoinsTheConvolutionBeforeIt) {
  BatchNorm frozen(16, relu), trained(16, relu);
  testmode(frozen);
  trainmode(trained);
  const Array x = randn({12, 12, 8, 2});
  for (const bool bias : {false, true}) {
    const Conv layer({3, 3}, 8, 16, identity, {.pad = {1}, .bias = bias});
    eval();
    const Launched alone = launches([&] { return layer(x); });
    const Launched joined = launches([&] { return frozen(layer(x)); });
    EXPECT_EQ(joined.calls, 1);
    EXPECT_EQ(joined.kernels, alone.kernels + 1);
    EXPECT_GT(launches([&] { return trained(layer(x)); }).kernels, joined.kernels);
  }
}

/// Steps in another order, and what waits for the result, are computed behind the call.
TEST(Epilogue, StepsOfChannelsStayInOrder) {
  const Array x = randn({12, 12, 8, 2}), w = randn({3, 3, 8, 16}), c = randn({1, 1, 16, 1}), d = randn({1, 1, 16, 1});
  eval();
  const int64_t alone = launches([&] { return conv(x, w); }).kernels;
  EXPECT_EQ(launches([&] { return (conv(x, w) - c) * d; }).kernels, alone);
  EXPECT_EQ(launches([&] { return d * (conv(x, w) - c); }).kernels, alone);
  EXPECT_GT(launches([&] { return c - conv(x, w); }).kernels, alone);
  EXPECT_EQ(launches([&] { return (conv(x, w) + c) * d; }).kernels, alone);
  EXPECT_EQ(launches([&] { return conv(x, w) + c + d; }).kernels, alone);
  EXPECT_GT(launches([&] { return conv(x, w) * d - c; }).kernels, alone);
  EXPECT_GT(launches([&] { return conv(x, w) * d * c; }).kernels, alone);
  EXPECT_GT(launches([&] { return conv(x, w) - c - d; }).kernels, alone);
  const auto centred = [&] {
    const Array y = conv(x, w);
    return y - mean(y, {0, 1, 3});
  };
  EXPECT_GT(launches(centred).kernels, alone);
}

/// Sizes for which either engine is the faster one, strides, and groups.
TEST(Epilogue, TransposedConvolutionsHaveTheSameBits) {
  seed(5);
  struct Case {
    Shape x, w;
    int64_t stride, groups;
  };
  for (const auto& [x_shape, w_shape, stride, groups] :
       {Case{{9, 8, 6, 5}, {3, 3, 1, 6}, 1, 1}, Case{{6, 5, 16, 3}, {4, 4, 24, 16}, 2, 1},
        Case{{7, 6, 8, 2}, {3, 3, 5, 8}, 2, 2}, Case{{11, 5, 2}, {4, 3, 5}, 1, 1}}) {
    for (const DType type : {Float32, Float64}) {
      const Array x = normal(x_shape, 0, 1, type), w = normal(w_shape, 0, 1, type);
      const ConvOptions options{.stride = {stride}, .groups = groups};
      const Array residual = normal(conv_transpose(x, w, options).shape(), 0, 1, type);
      const Array bias = normal(one_each_channel(x_shape.rank(), residual.size(-2)), 0, 1, type);
      expect_same_bits([&] { return conv_transpose(x, w, options); }, bias, residual,
                       to_string(type) + to_string(x_shape));
    }
  }
  const ConvTranspose layer({3, 3}, 6, 5, relu);
  const Array image = randn({9, 8, 6, 1});
  eval();
  EXPECT_EQ(launches([&] { return layer(image); }).calls, 1);
  EXPECT_EQ(launches([&] { return layer(image); }).kernels,
            launches([&] { return conv_transpose(image, layer.weight); }).kernels);
}

TEST(Epilogue, NotANumberAndZerosWithASignStay) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Array a({1.0f, -1.0f, nan, -0.0f, infinity, 2.0f}, {6, 1}), b({1.0f, -0.0f, -2.0f}, {1, 3});
  const Array bias({-0.0f, 1.0f, 0.0f, -0.0f, 1.0f, -infinity}, {6});
  expect_same_bits([&] { return matmul(a, b); }, bias, matmul(a, b), "edges");
}

TEST(Epilogue, ALayerIsOneCall) {
  const Array x = ones({4, 7});
  for (const Activation& act : {Activation(identity), Activation(relu), Activation(relu6), Activation(sigmoid),
                                Activation(tanh), Activation(gelu)}) {
    const Dense layer(4, 6, act);
    eval();
    EXPECT_EQ(launches([&] { return layer(x); }), (Launched{0, 1}));
  }
  const Dense other(4, 6, swish);
  eval();
  EXPECT_EQ(launches([&] { return other(x); }), (Launched{1, 1}));
}

TEST(Epilogue, TheSlopeOfReluUpToSixNeedsNothingFromBefore) {
  const Array x = ones({4, 7}), w = ones({6, 4}), bias = ones({6});
  const auto loss = [&](const Array& at) { return sum(relu6(matmul(at, x) + bias)); };
  EXPECT_EQ(launches([&] { return gradient(loss, w); }),
            launches([&] { return gradient([&](const Array& at) { return sum(relu(matmul(at, x) + bias)); }, w); }));
}

TEST(Epilogue, WhatSomebodyElseReadsIsComputedApart) {
  const Array x = ones({4, 7}), w = ones({6, 4}), bias = ones({6});
  eval();
  Array product, shifted;
  EXPECT_EQ(launches([&] {
              product = matmul(w, x);
              return relu(product + bias);
            }),
            (Launched{1, 1}));
  EXPECT_EQ(launches([&] {  // the sum stays, relu is a kernel behind
              shifted = matmul(w, x) + bias;
              return relu(shifted);
            }),
            (Launched{1, 1}));
  EXPECT_EQ(launches([&] {
              const Array p = matmul(w, x);
              return relu(p + bias) + p;
            }),
            (Launched{1, 1}));
}

TEST(Epilogue, ASumThatWaitsForTheCallIsNoPartOfIt) {
  const Array x = ones({5, 5});
  eval();
  Array y;
  EXPECT_EQ(launches([&] {
              const Array p = matmul(x, x);
              return y = matmul(p, x) + matmul(x, p);  // the first product is there by then: one call takes the other's
            }),
            (Launched{0, 3}));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(25, 50.0f));
  EXPECT_EQ(launches([&] {
              const Array p = matmul(x, x);
              return y = p + matmul(p * 2, x);
            }),
            (Launched{1, 2}));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(25, 55.0f));
}

TEST(Epilogue, IntegersAreAddedApart) {
  const Array x = cast(ones({4, 7}), Int64), w = cast(ones({6, 4}), Int64), bias = cast(ones({6}), Int64);
  eval();
  EXPECT_EQ(launches([&] { return matmul(w, x) + bias; }), (Launched{1, 1}));
}

/// Each step rounds to the half again, as kernels do.
TEST(Epilogue, ProductsAndConvolutionsOfHalvesHaveTheSameBits) {
  seed(6);
  for (const DType type : {BFloat16, Float16}) {
    const auto drawn = [type](const Shape& shape) { return cast(randn(shape), type); };
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 5, 7}, {33, 70, 90}, {700, 3, 9}}) {
      const Array a = drawn({m, k}), b = drawn({k, n}), bias = drawn({m}), residual = drawn({m, n});
      expect_same_bits([&] { return matmul(a, b); }, bias, residual, to_string(type) + to_string(Shape{m, n, k}));
      EXPECT_EQ(launches([&] { return relu(matmul(a, b) + bias); }), (Launched{0, 1}));
    }
    const Array x = drawn({9, 8, 3, 2}), w = drawn({3, 3, 3, 5}), bias = drawn({1, 1, 5, 1});
    expect_same_bits([&] { return conv(x, w); }, bias, drawn({7, 6, 5, 2}), std::string(to_string(type)) + " images");
  }
}

TEST(Epilogue, GradientsOfALayerHaveTheSameBits) {
  seed(4);
  const Array x = randn({12, 9}), w = randn({7, 12}), b = randn({7});
  for (const Op activation : {relu, sigmoid, tanh}) {
    const auto gradients = [&](bool apart) {
      std::vector<Array> held;
      const auto loss = [&](const Array& weight, const Array& bias) {
        const Array product = matmul(weight, x), shifted = product + bias;
        if (apart) held = {product, shifted};
        return sum(square(activation(shifted)));
      };
      const auto [dw, db] = gradient(loss, w, b);
      eval();
      return std::vector<Array>{dw, db};
    };
    const auto joined = gradients(false), separate = gradients(true);
    for (size_t i = 0; i < joined.size(); ++i) EXPECT_TRUE(same_bits(joined[i], separate[i])) << i;
  }
}

/// No call takes it along on the CPU: the kernel of the slope has each element in a register already.
TEST(Epilogue, ABiasGradientIsAddedUpWhereItsSlopeIsMade) {
  seed(7);
  const Array x = randn({12, 9}), w = randn({7, 12}), b = randn({7});
  const auto loss = [&](const Array& weight, const Array& bias) { return sum(square(relu(matmul(weight, x) + bias))); };
  const Stats both = counted([&] { return gradient(loss, w, b); });
  const Stats one = counted([&] { return gradient([&](const Array& weight) { return loss(weight, b); }, w); });
  EXPECT_EQ(both.kernels, one.kernels);
  EXPECT_EQ(both.calls, one.calls);
  EXPECT_EQ(both.read_bytes, one.read_bytes);
  EXPECT_EQ(both.written_bytes, one.written_bytes + 7 * 4);
}

}  // namespace
}  // namespace rosin
