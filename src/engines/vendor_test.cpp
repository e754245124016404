// Vendor calls against the plain definition in Float64, over many shapes and every engine; and the promises about
// chunks, threads and OpenMP. The plain definition itself is checked against PyTorch in plain_test.cpp.
#include "engines/vendor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "engines/converted.hpp"
#include "engines/onednn.hpp"
#include "engines/plain.hpp"
#include "engines/tile.hpp"
#include "engines/vendor_testing.hpp"
#include "engines/winograd.hpp"

extern "C" {
int omp_get_max_threads(void) __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

namespace rosin::engines {
namespace {

std::string name_of(const MatmulSpec& s, const char* engine) {
  return std::string(engine) + " (m, n, k, batch) (" + std::to_string(s.m) + ", " + std::to_string(s.n) + ", " +
         std::to_string(s.k) + ", " + std::to_string(s.batch) + ")" + (s.a_transposed ? " A transposed" : "") +
         (s.b_transposed ? " B transposed" : "") + (s.accumulate ? " accumulating" : "") +
         (s.epilogue.bias ? " bias" : "") + (s.epilogue.activation == Activation::relu ? " relu" : "");
}

int64_t length_of(int64_t items, int64_t stride, int64_t columns, int64_t distance) {
  return std::max<int64_t>(1, (std::max<int64_t>(items, 1) - 1) * stride + columns * distance);
}

template <class T> void check_matmul(const VendorCall& call, const MatmulSpec& spec, double tolerance) {
  const auto a =
      random_values(length_of(spec.batch, spec.a_batch_stride, spec.a_transposed ? spec.m : spec.k, spec.lda));
  const auto b =
      random_values(length_of(spec.batch, spec.b_batch_stride, spec.b_transposed ? spec.k : spec.n, spec.ldb));
  const auto bias = random_values(std::max<int64_t>(1, spec.m));
  auto expected = random_values(length_of(spec.batch, spec.c_batch_stride, spec.n, spec.ldc));
  const std::vector<T> ta = converted<T>(a), tb = converted<T>(b), tbias = converted<T>(bias);
  std::vector<T> result = converted<T>(expected);
  MatmulSpec wide = spec;
  wide.type = DType::Float64;
  plain_matmul<double>(wide, 0, spec.batch, 0, spec.n, a.data(), b.data(), spec.epilogue.bias ? bias.data() : nullptr,
                       expected.data());
  execute(call, {ta.data(), tb.data(), tbias.data(), result.data(), nullptr});
  expect_close(result, expected, tolerance, name_of(spec, call.engine()));
}

template <class T> void check_matmul_engine(const MatmulSpec& spec, Engine engine, double tolerance) {
  check_matmul<T>(*prepare_matmul(spec, engine), spec, tolerance);
}

constexpr Epilogue epilogues[] = {
    {}, {.bias = true}, {.bias = true, .activation = Activation::relu}, {.activation = Activation::relu}};

template <class T> void check_matmul_all(MatmulSpec spec, double tolerance) {
  for (Engine engine : engines_for(spec)) {
    if (spec.m * spec.n * spec.k * spec.batch == 0 && engine == Engine::onednn) continue;
    check_matmul_engine<T>(spec, engine, tolerance);
  }
}

/// m, n, k: zero and one, below and above one vector, ragged tiles, several blocks of k, several chunks.
constexpr int64_t matmul_sizes[][3] = {
    {0, 3, 2},     {3, 0, 2},      {3, 2, 0},      {1, 1, 1},      {1, 7, 5},      {7, 1, 5},      {2, 8, 200},
    {8, 24, 24},   {17, 13, 9},    {33, 29, 31},   {16, 12, 16},   {5, 300, 3},    {300, 5, 3},    {64, 64, 64},
    {65, 50, 300}, {10, 128, 256}, {96, 100, 90},  {130, 257, 70}, {257, 20, 200}, {16, 32, 5000}, {3, 500, 300},
    {260, 3, 300}, {9, 260, 1000}, {260, 14, 131}, {1, 70, 200},   {70, 1, 200}};

TEST(VendorMatmul, EveryEngineAgreesWithThePlainDefinition) {
  for (const auto& size : matmul_sizes) {
    for (int form = 0; form < 4; ++form) {
      MatmulSpec spec = matmul(DType::Float32, size[0], size[1], size[2], form & 1, form & 2);
      check_matmul_all<float>(spec, 2e-6);
      spec.type = DType::Float64;
      check_matmul_all<double>(spec, 1e-14);
    }
  }
}

TEST(VendorMatmul, BiasReluGapsAndAccumulationAreKept) {
  for (const auto& size : matmul_sizes) {
    for (const Epilogue& epilogue : epilogues) {
      for (int form = 0; form < 8; ++form) {
        MatmulSpec spec = matmul(DType::Float32, size[0], size[1], size[2], form & 1, form & 2, 3);
        spec.epilogue = epilogue;
        spec.accumulate = form & 4;
        check_matmul_all<float>(spec, 2e-6);
      }
    }
  }
}

/// What the epilogue makes of the results of the call without it.
std::vector<float> by_hand(std::vector<float> result, const Epilogue& epilogue, const std::vector<float>& bias,
                           const std::vector<float>& residual, const std::array<std::vector<float>, 3>& normalising) {
  for (size_t i = 0; i < result.size(); ++i) {
    if (epilogue.bias) result[i] += bias[i % bias.size()];
    if (epilogue.center) result[i] -= normalising[0][i % bias.size()];
    if (epilogue.factor) result[i] *= normalising[1][i % bias.size()];
    if (epilogue.shift) result[i] += normalising[2][i % bias.size()];
    if (epilogue.residual) result[i] += residual[i];
    if (epilogue.activation == Activation::relu) result[i] = result[i] < 0 ? 0 : result[i];
    if (epilogue.activation == Activation::relu6) result[i] = std::clamp(result[i], 0.0f, 6.0f);
    if (epilogue.activation == Activation::tanh) result[i] += 1;  // see add_one
  }
  return result;
}

constexpr Epilogue all_epilogues[] = {{.bias = true},
                                      {.residual = true},
                                      {.activation = Activation::relu},
                                      {.activation = Activation::tanh},
                                      {.bias = true, .activation = Activation::relu},
                                      {.bias = true, .activation = Activation::tanh},
                                      {.activation = Activation::relu6},
                                      {.bias = true, .activation = Activation::relu6},
                                      {.bias = true, .residual = true, .activation = Activation::relu},
                                      {.bias = true, .residual = true, .activation = Activation::tanh},
                                      {.factor = true},
                                      {.activation = Activation::relu, .center = true},
                                      {.activation = Activation::relu6, .center = true, .factor = true, .shift = true},
                                      {.bias = true, .residual = true, .factor = true, .shift = true}};

/// The bits of `prepare(spec)` with each epilogue are those of the same steps behind the call without one.
template <class Spec, class Prepare>
void check_epilogue_bits(Spec spec, const std::vector<float>& first, const std::vector<float>& second, int64_t rows,
                         int64_t count, Prepare&& prepare, const std::string& name) {
  const auto of_rows = [rows](double shift) { return rough_values<float>(std::max<int64_t>(rows, 1), shift); };
  const auto bias = of_rows(5), residual = rough_values<float>(count, 9);
  const std::array<std::vector<float>, 3> normalising{of_rows(6), of_rows(7), of_rows(8)};
  std::vector<float> plain(static_cast<size_t>(count));
  execute(*prepare(spec), {first.data(), second.data(), nullptr, plain.data(), nullptr});
  for (const Epilogue& epilogue : all_epilogues) {
    spec.epilogue = epilogue;
    spec.activation = &add_one;
    std::vector<float> got(static_cast<size_t>(count), 7.0f);
    const auto call = prepare(spec);
    VendorBuffers buffers{first.data(), second.data(), bias.data(), got.data(), nullptr, residual.data()};
    buffers.center = normalising[0].data();
    buffers.factor = normalising[1].data();
    buffers.shift = normalising[2].data();
    execute(*call, buffers, 2, true);
    const std::vector<float> wanted = by_hand(plain, epilogue, bias, residual, normalising);
    EXPECT_TRUE(got.empty() || std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0)
        << name << " by " << call->engine() << ", epilogue " << (&epilogue - all_epilogues);
  }
}

TEST(VendorMatmul, AnEpilogueHasTheBitsOfTheSameStepsBehindTheProduct) {
  for (const auto& size : matmul_sizes) {
    for (int form = 0; form < 4; ++form) {
      const MatmulSpec spec = matmul(DType::Float32, size[0], size[1], size[2], form & 1, form & 2);
      const auto a = rough_values<float>(spec.m * spec.k + 1, 1), b = rough_values<float>(spec.k * spec.n + 1, 2);
      for (Engine engine : engines_for(spec)) {
        if (spec.m * spec.n * spec.k == 0 && engine == Engine::onednn) continue;
        check_epilogue_bits(
            spec, a, b, spec.m, spec.m * spec.n, [&](const MatmulSpec& s) { return prepare_matmul(s, engine); },
            name_of(spec, "matmul"));
      }
    }
  }
}

TEST(VendorMatmul, OperandsThatAreCopiedInBlocksKeepTheirValues) {
  for (Engine engine : {Engine::best, Engine::tile}) {
    check_matmul_engine<float>(matmul(DType::Float32, 66, 3100, 70, false, true), engine, 2e-6);
    check_matmul_engine<float>(matmul(DType::Float32, 801, 53, 261, false, false), engine, 2e-6);
    check_matmul_engine<float>(matmul(DType::Float32, 230, 33, 300, true, false), engine, 2e-6);
  }
}

/// Of any size here; best for large matrices alone.
TEST(VendorMatmul, MatricesThatAreReadFromEndToEndAgreeWithTheDefinition) {
  for (const auto& [lines, few, k] : {std::array<int64_t, 3>{1, 1, 1}, {90, 2, 20}, {300, 2, 2000}, {20000, 1, 70}}) {
    for (int form = 0; form < 8; ++form) {
      const bool turned = form & 1, other = form & 2;
      MatmulSpec spec = turned ? matmul(DType::Float32, few, lines, k, other, true, 3)
                               : matmul(DType::Float32, lines, few, k, false, other, 3);
      spec.accumulate = form & 4;
      spec.epilogue.bias = true;
      check_matmul<float>(*prepare_sweep_matmul(spec), spec, 2e-6);
      spec.type = DType::Float64;
      check_matmul<double>(*prepare_sweep_matmul(spec), spec, 1e-14);
      if (spec.accumulate) continue;
      spec.type = DType::BFloat16;
      check_matmul<BFloat>(*prepare_sweep_matmul(spec), spec, 1e-2);
      spec.type = DType::Float16;
      check_matmul<Half>(*prepare_sweep_matmul(spec), spec, 1e-3);
    }
  }
}

TEST(VendorMatmul, LargeMatricesByFewColumnsAreReadFromEndToEnd) {
  MatmulSpec spec = matmul(DType::Float32, 4096, 2, 2048, false, false);
  EXPECT_TRUE(sweep_pays(spec));
  check_matmul_engine<float>(spec, Engine::best, 2e-6);
  spec.type = DType::Float64;
  check_matmul_engine<double>(spec, Engine::best, 1e-14);
}

/// One tile each, and more; rows that fill vectors, and that do not.
TEST(VendorMatmul, SmallProductsOfABatchKeepEpiloguesAndGaps) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 1, 3}, {4, 4, 4}, {8, 3, 2}, {16, 5, 7}, {17, 2, 3}, {4, 40, 3}}) {
    for (const Epilogue& epilogue : epilogues) {
      for (int form = 0; form < 8; ++form) {
        MatmulSpec spec = matmul(DType::Float32, m, n, k, form & 1, form & 2, 1);
        spec.batch = 9;
        spec.epilogue = epilogue;
        spec.accumulate = form & 4;
        spec.a_batch_stride = spec.lda * (spec.a_transposed ? m : k) + 2;
        spec.b_batch_stride = spec.ldb * (spec.b_transposed ? k : n) + 3;
        spec.c_batch_stride = spec.ldc * n + 1;
        check_matmul_all<float>(spec, 2e-6);
        spec.type = DType::Float64;
        check_matmul_all<double>(spec, 1e-14);
      }
    }
  }
}

TEST(VendorMatmul, BatchesMayBroadcastEitherOperand) {
  for (int64_t batch : {0, 1, 2, 5, 37}) {
    for (int broadcast = 0; broadcast < 3; ++broadcast) {
      for (int form = 0; form < 4; ++form) {
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 4, 5}, {20, 21, 22}, {70, 71, 72}, {5, 18, 150}}) {
          MatmulSpec spec = matmul(DType::Float32, m, n, k, form & 1, form & 2);
          spec.batch = batch;
          spec.a_batch_stride = broadcast == 1 ? 0 : k * (m + 2);
          spec.b_batch_stride = broadcast == 2 ? 0 : k * n;
          spec.c_batch_stride = m * n;
          check_matmul_all<float>(spec, 2e-6);
        }
      }
    }
  }
}

TEST(VendorMatmul, HalvesKeepSumsInFloat) {
  for (const auto& size : matmul_sizes) {
    for (int form = 0; form < 4; ++form) {
      MatmulSpec spec = matmul(DType::BFloat16, size[0], size[1], size[2], form & 1, form & 2);
      check_matmul_all<BFloat>(spec, 4.0e-3);
      spec.type = DType::Float16;
      check_matmul_all<Half>(spec, 5.0e-4);
    }
  }
}

TEST(VendorMatmul, IntegersWrap) {
  const std::vector<int8_t> a{100, 50, -3, 7}, b{2, 1, 3, -1};
  std::vector<int8_t> c(4);
  const auto call = prepare_matmul(matmul(DType::Int8, 2, 2, 2, false, false));
  execute(*call, {a.data(), b.data(), nullptr, c.data(), nullptr});
  // NumPy: np.array([[100,-3],[50,7]],np.int8) @ np.array([[2,3],[1,-1]],np.int8)
  EXPECT_EQ(c, (std::vector<int8_t>{-59, 107, 47, -113}));
}

TEST(VendorMatmul, TypesWithoutAProductAreRefused) {
  try {
    prepare_matmul(matmul(DType::ComplexF32, 2, 2, 2, false, false));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
    EXPECT_STREQ(error.what(),
                 "matmul: element type ComplexF32 has no product; convert both operands, for example with f32(x)");
  }
}

TEST(VendorMatmul, OverlappingColumnsAreRefused) {
  MatmulSpec spec = matmul(DType::Float32, 4, 4, 4, false, false);
  spec.ldc = 3;
  EXPECT_THROW(prepare_matmul(spec), Error);
}

struct ConvCase {
  int spatial;
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[3], kernel[3], stride[3], low[3], high[3], dilation[3];
};

const ConvCase conv_cases[] = {
    {2, 4, 1, 6, 1, {28, 28, 0}, {5, 5, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 9, 6, 16, 1, {12, 12, 0}, {5, 5, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 2, 3, 8, 1, {9, 7, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
    {2, 2, 3, 8, 1, {10, 7, 0}, {3, 2, 0}, {2, 3, 0}, {0, 1, 0}, {1, 2, 0}, {1, 1, 0}},
    {2, 3, 4, 6, 2, {8, 9, 0}, {3, 3, 0}, {1, 1, 0}, {1, 0, 0}, {2, 1, 0}, {2, 1, 0}},
    {2, 2, 4, 4, 4, {8, 8, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
    {2, 1, 2, 5, 1, {11, 12, 0}, {3, 2, 0}, {2, 1, 0}, {2, 0, 0}, {0, 3, 0}, {2, 3, 0}},
    {2, 1, 1, 1, 1, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 5, 32, 40, 1, {6, 6, 0}, {1, 1, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 17, 16, 32, 1, {14, 14, 0}, {3, 3, 0}, {2, 2, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
    {1, 3, 5, 7, 1, {20, 0, 0}, {4, 0, 0}, {1, 0, 0}, {2, 0, 0}, {1, 0, 0}, {1, 0, 0}},
    {1, 2, 37, 37, 37, {21, 0, 0}, {3, 0, 0}, {2, 0, 0}, {3, 0, 0}, {1, 0, 0}, {2, 0, 0}},
    {1, 2, 6, 4, 2, {15, 0, 0}, {3, 0, 0}, {2, 0, 0}, {3, 0, 0}, {0, 0, 0}, {3, 0, 0}},
    {3, 2, 2, 3, 1, {6, 5, 4}, {2, 3, 2}, {1, 1, 1}, {1, 0, 1}, {0, 2, 0}, {1, 1, 1}},
    {2, 9, 7, 17, 1, {12, 12, 0}, {5, 5, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 3, 14, 17, 1, {9, 8, 0}, {3, 3, 0}, {1, 2, 0}, {2, 1, 0}, {0, 2, 0}, {2, 1, 0}},
    {3, 2, 10, 34, 2, {5, 4, 4}, {3, 2, 2}, {1, 1, 1}, {1, 0, 1}, {0, 1, 0}, {1, 1, 1}},
    {3, 1, 4, 6, 2, {7, 6, 5}, {3, 2, 2}, {2, 1, 2}, {1, 1, 0}, {1, 0, 1}, {1, 2, 1}},
    // The tile kernel takes pixels in groups of up to four; widths of 25, 11, 7, 5 and 3 leave one or more over.
    {2, 5, 1, 7, 1, {29, 29, 0}, {5, 5, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 3, 2, 4, 1, {23, 6, 0}, {3, 2, 0}, {2, 3, 0}, {0, 1, 0}, {0, 2, 0}, {1, 1, 0}},
    {2, 2, 3, 3, 1, {7, 5, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 2, 0}},
    {1, 4, 2, 6, 1, {13, 0, 0}, {4, 0, 0}, {2, 0, 0}, {1, 0, 0}, {0, 0, 0}, {1, 0, 0}},
    {3, 2, 1, 5, 1, {4, 3, 5}, {2, 2, 2}, {1, 2, 1}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}},
    // Few images, which oneDNN and the tile kernel are given by rows: strides and borders, of one to three dims.
    {2, 1, 3, 6, 1, {60, 61, 0}, {5, 5, 0}, {2, 2, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, 0}},
    {2, 1, 16, 32, 1, {33, 31, 0}, {3, 3, 0}, {2, 1, 0}, {1, 1, 0}, {0, 2, 0}, {1, 2, 0}},
    {2, 3, 16, 24, 1, {20, 21, 0}, {3, 3, 0}, {1, 2, 0}, {1, 1, 0}, {1, 0, 0}, {1, 1, 0}},
    {1, 1, 24, 40, 1, {301, 0, 0}, {5, 0, 0}, {2, 0, 0}, {3, 0, 0}, {1, 0, 0}, {2, 0, 0}},
    {3, 1, 8, 20, 2, {9, 8, 13}, {3, 2, 3}, {1, 1, 2}, {1, 0, 2}, {1, 1, 1}, {1, 1, 1}},
    // Winograd's filtering: squares that images end in, panels of channels that are not full, all paddings.
    {2, 3, 37, 67, 1, {13, 7, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
    {2, 5, 32, 32, 1, {10, 9, 0}, {3, 3, 0}, {1, 1, 0}, {0, 2, 0}, {2, 0, 0}, {1, 1, 0}},
    {2, 2, 33, 3, 1, {5, 3, 0}, {3, 3, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0}},
    {2, 2, 5, 7, 1, {42, 40, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
    {2, 2, 63, 77, 1, {9, 6, 0}, {3, 3, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}},
};

ConvSpec conv_spec(const ConvCase& c, ConvKind kind) {
  ConvSpec spec;
  spec.kind = kind;
  spec.spatial = c.spatial;
  spec.batch = c.batch;
  spec.in_channels = c.in_channels;
  spec.out_channels = c.out_channels;
  spec.groups = c.groups;
  for (int i = 0; i < c.spatial; ++i) {
    spec.in[i] = c.in[i];
    spec.kernel[i] = c.kernel[i];
    spec.stride[i] = c.stride[i];
    spec.pad_low[i] = c.low[i];
    spec.pad_high[i] = c.high[i];
    spec.dilation[i] = c.dilation[i];
    spec.out[i] = (c.in[i] + c.low[i] + c.high[i] - (c.kernel[i] - 1) * c.dilation[i] - 1) / c.stride[i] + 1;
  }
  return spec;
}

TEST(VendorConv, AnImageHasWorkForSeveralThreads) {
  const ConvCase image = {2, 1, 3, 6, 1, {60, 61, 0}, {5, 5, 0}, {2, 2, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, 0}};
  for (const Engine engine : {Engine::tile, Engine::onednn}) {
    if (engine == Engine::onednn && !have_onednn) continue;
    EXPECT_GT(prepare_conv(conv_spec(image, ConvKind::forward), engine)->chunks(), 1);
  }
}

/// oneDNN 2.6 has no machine code for these on processors with AVX-512.
TEST(VendorConv, WhatOnednnHasNoMachineCodeForIsComputedByOurOwnEngines) {
  const ConvCase line = {1, 4, 16, 16, 1, {4000, 0, 0}, {31, 0, 0}, {1, 0, 0}, {15, 0, 0}, {15, 0, 0}, {1, 0, 0}};
  const ConvSpec spec = conv_spec(line, ConvKind::backward_weights);
  try {
    prepare_conv(spec, Engine::onednn);
    GTEST_SKIP() << "oneDNN has machine code for it here";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::backend) << error.what();
  }
  EXPECT_STREQ(prepare_conv(spec)->engine(), "tile");
}

TEST(VendorConv, NoImagesAreNoWork) {
  const ConvCase none = {2, 0, 3, 6, 1, {60, 61, 0}, {5, 5, 0}, {2, 2, 0}, {2, 1, 0}, {1, 2, 0}, {1, 1, 0}};
  for (const Engine engine : {Engine::best, Engine::tile, Engine::plain})
    EXPECT_LE(prepare_conv(conv_spec(none, ConvKind::forward), engine)->chunks(), 1);
}

int64_t count_of(const int64_t* sizes, int count) {
  int64_t result = 1;
  for (int i = 0; i < count; ++i) result *= sizes[i];
  return result;
}

/// First operand, second operand, result of a kind: 0 is x, 1 is w, 2 is y.
constexpr int conv_roles[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};

template <class T> void check_conv_engine(const ConvSpec& spec, Engine engine, double tolerance, int threads = 1) {
  const int64_t sizes[] = {spec.batch * spec.in_channels * count_of(spec.in, spec.spatial),
                           spec.out_channels * (spec.in_channels / spec.groups) * count_of(spec.kernel, spec.spatial),
                           spec.batch * spec.out_channels * count_of(spec.out, spec.spatial)};
  const int* roles = conv_roles[static_cast<int>(spec.kind)];
  const auto first = random_values(sizes[roles[0]]), second = random_values(sizes[roles[1]]);
  const auto bias = random_values(spec.out_channels);
  std::vector<double> expected(static_cast<size_t>(sizes[roles[2]]));
  if (spec.kind == ConvKind::forward) {
    plain_conv_forward(spec, 0, spec.batch, first.data(), second.data(), bias.data(), expected.data());
  } else if (spec.kind == ConvKind::backward_data) {
    plain_conv_backward_data(spec, 0, spec.batch, first.data(), second.data(), expected.data());
  } else {
    plain_conv_backward_weights(spec, 0, spec.out_channels, first.data(), second.data(), expected.data());
  }
  const std::vector<T> a = converted<T>(first), b = converted<T>(second), c = converted<T>(bias);
  std::vector<T> result = converted<T>(random_values(sizes[roles[2]]));
  const auto call = prepare_conv(spec, engine);
  execute(*call, {a.data(), b.data(), c.data(), result.data(), nullptr}, threads);
  expect_close(result, expected, tolerance,
               std::string(call->engine()) + " kind " + std::to_string(static_cast<int>(spec.kind)) + " channels " +
                   std::to_string(spec.in_channels) + " " + std::to_string(spec.out_channels));
}

/// Of the largest result. Winograd's filtering loses more, by weights most (docs/performance.md).
double tolerance_of(Engine engine) { return engine == Engine::winograd ? 1e-5 : 3e-6; }

TEST(VendorConv, EveryEngineAgreesWithThePlainDefinition) {
  for (const ConvCase& c : conv_cases) {
    for (ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
      for (bool flipped : {false, true}) {
        ConvSpec spec = conv_spec(c, kind);
        spec.flipped = flipped;
        for (Engine engine : engines_for(spec)) check_conv_engine<float>(spec, engine, tolerance_of(engine));
        spec.type = DType::Float64;
        for (Engine engine : engines_for(DType::Float64)) check_conv_engine<double>(spec, engine, 1e-14);
        spec.type = DType::BFloat16;
        for (Engine engine : engines_for(DType::BFloat16)) check_conv_engine<BFloat>(spec, engine, 4e-3);
        spec.type = DType::Float16;
        check_conv_engine<Half>(spec, Engine::best, 5e-4);
      }
    }
  }
}

TEST(VendorMatmul, HalvesAreNotComputedByPlainLoops) {
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    EXPECT_STRNE(prepare_matmul(matmul(type, 64, 64, 64, false, false))->engine(), "plain");
  }
}

TEST(VendorHalves, AreConvertedAsTheirTypesSay) {
  std::vector<uint16_t> bits(1 << 16), back(bits.size());
  std::vector<float> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const auto count = static_cast<int64_t>(bits.size());
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    widen(type, bits.data(), values.data(), count);
    narrow(type, values.data(), back.data(), count);
    for (size_t i = 0; i < bits.size(); ++i) {
      const float want = type == DType::Float16 ? half_value(bits[i]) : bfloat_value(bits[i]);
      ASSERT_TRUE(values[i] == want || (std::isnan(values[i]) && std::isnan(want))) << i;
      ASSERT_TRUE(back[i] == bits[i] || std::isnan(want)) << i;
    }
  }
  const float between[] = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65520.0f, 0x1p-25f, -0x1.8p-25f, 1, 1, 1};  // ties, limits
  uint16_t rounded[8];
  narrow(DType::Float16, between, rounded, 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rounded[i], half_bits(between[i])) << i;
}

TEST(VendorConv, BiasAndReluAreApplied) {
  for (const ConvCase& c : conv_cases) {
    for (const Epilogue& epilogue : epilogues) {
      ConvSpec spec = conv_spec(c, ConvKind::forward);
      spec.epilogue = epilogue;
      for (Engine engine : engines_for(spec)) check_conv_engine<float>(spec, engine, tolerance_of(engine));
    }
  }
}

TEST(VendorConv, AnEpilogueHasTheBitsOfTheSameStepsBehindTheConvolution) {
  for (const ConvCase& c : conv_cases) {
    const ConvSpec spec = conv_spec(c, ConvKind::forward);
    const auto count = [&](const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; };
    const auto x = rough_values<float>(count(spec.in) * spec.in_channels * spec.batch, 1);
    const auto w = rough_values<float>(count(spec.kernel) * spec.in_channels / spec.groups * spec.out_channels, 2);
    for (Engine engine : engines_for(spec)) {
      check_epilogue_bits(
          spec, x, w, spec.out_channels, count(spec.out) * spec.out_channels * spec.batch,
          [&](const ConvSpec& s) { return prepare_conv(s, engine); }, "conv");
    }
  }
}

TEST(VendorConv, WrongOutputSizesAreRefused) {
  ConvSpec spec = conv_spec(conv_cases[0], ConvKind::forward);
  spec.out[1] += 1;
  EXPECT_THROW(prepare_conv(spec), Error);
}

TEST(VendorConv, AnEmptyBatchHasAZeroWeightGradient) {
  ConvSpec spec = conv_spec(conv_cases[0], ConvKind::backward_weights);
  spec.batch = 0;
  std::vector<float> dw(150, 7.0f);
  execute(*prepare_conv(spec), {nullptr, nullptr, nullptr, dw.data(), nullptr});
  EXPECT_EQ(dw, std::vector<float>(150, 0.0f));
}

/// Runs one call three ways and compares bits: in order, backwards, on three threads.
void expect_equal_bits(const VendorCall& call, VendorBuffers buffers, size_t result_bytes, const std::string& name) {
  std::vector<std::vector<char>> results;
  for (int way = 0; way < 3; ++way) {
    std::vector<char> result(result_bytes);
    buffers.result = result.data();
    execute(call, buffers, way == 2 ? 3 : 1, way == 1);
    results.push_back(result);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), result_bytes), 0) << name;
  EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), result_bytes), 0) << name;
}

std::vector<float> irregular_values(int64_t count) {
  static std::mt19937 generator(11);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

TEST(VendorCalls, ResultsAreBitEqualForAnyOrderOfChunksAndAnyNumberOfThreads) {
  const int64_t sizes[][3] = {{256, 128, 784}, {120, 256, 128}, {16, 32, 10000}, {32, 10000, 4}};
  for (const auto& s : sizes) {
    for (int form = 0; form < 4; ++form) {
      for (Engine engine : engines_for(DType::Float32)) {
        const MatmulSpec spec = matmul(DType::Float32, s[0], s[1], s[2], form & 1, form & 2);
        const auto a = irregular_values(s[0] * s[2]), b = irregular_values(s[1] * s[2]);
        const auto call = prepare_matmul(spec, engine);
        const int64_t least = engine == Engine::plain ? 1 : 2;
        EXPECT_GE(call->chunks(), least) << name_of(spec, call->engine());
        expect_equal_bits(*call, {a.data(), b.data(), nullptr, nullptr, nullptr},
                          static_cast<size_t>(s[0] * s[1]) * sizeof(float), name_of(spec, call->engine()));
      }
    }
  }
}

TEST(VendorCalls, ConvolutionsAreBitEqualForAnyNumberOfThreads) {
  ConvCase c = conv_cases[1];
  c.batch = 128;
  for (ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    for (Engine engine : engines_for(DType::Float32)) {
      const ConvSpec spec = conv_spec(c, kind);
      const int64_t sizes[] = {128 * 6 * 144, 2400, 128 * 16 * 64};
      const int* roles = conv_roles[static_cast<int>(kind)];
      const auto a = irregular_values(sizes[roles[0]]), b = irregular_values(sizes[roles[1]]);
      const auto call = prepare_conv(spec, engine);
      EXPECT_GT(call->chunks(), 1);
      expect_equal_bits(*call, {a.data(), b.data(), nullptr, nullptr, nullptr},
                        static_cast<size_t>(sizes[roles[2]]) * sizeof(float), call->engine());
    }
  }
}

TEST(VendorCalls, TheCallersOpenMPSettingIsKept) {
  if (omp_set_num_threads == nullptr || omp_get_max_threads == nullptr) GTEST_SKIP() << "no OpenMP in this process";
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  check_matmul_engine<float>(matmul(DType::Float32, 96, 100, 90, false, false), Engine::best, 2e-6);
  check_conv_engine<float>(conv_spec(conv_cases[9], ConvKind::forward), Engine::best, 3e-6);
  EXPECT_EQ(omp_get_max_threads(), 5);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace rosin::engines
