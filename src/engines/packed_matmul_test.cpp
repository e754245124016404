// Products of packed panels: the bits of the tile kernel, of any size, order, epilogue and number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "base/instruction_set.hpp"
#include "engines/tile.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// m, n, k: one, parts of panels and whole ones, several blocks of steps, of rows and of columns, chunks of both sides,
/// columns of A that are read where they stand and such as share the places of a cache.
constexpr int64_t sizes[][3] = {{1, 1, 1},        {5, 3, 7},       {48, 8, 16},    {49, 9, 17},
                                {47, 7, 300},     {24, 4, 256},    {130, 257, 70}, {97, 100, 513},
                                {300, 40, 1030},  {900, 33, 300},  {16, 1000, 20}, {640, 64, 700},
                                {2000, 130, 129}, {49, 4500, 400}, {1024, 40, 50}, {1024, 60, 50}};

template <class T>
std::vector<T> product(const MatmulSpec& spec, Engine engine, const std::vector<T>& a, const std::vector<T>& b,
                       int threads) {
  std::vector<T> c(static_cast<size_t>(std::max(spec.ldc * spec.n, spec.c_batch_stride * spec.batch)));
  for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<T>(i % 13) / 8;
  const std::vector<T> bias(static_cast<size_t>(spec.m), T(-0.375));
  execute(*prepare_matmul(spec, engine), {a.data(), b.data(), bias.data(), c.data(), nullptr}, threads, threads > 1);
  return c;
}

std::vector<double> rough(int64_t count) {
  std::vector<double> values = random_values(count);
  for (double& value : values) value *= 0.1;  // whose sums are rounded
  return values;
}

template <class T> void expect_bits_of_tiles(MatmulSpec spec) {
  const auto all = [](int64_t lines, int64_t distance) { return lines * distance; };
  const std::vector<double> a = rough(all(spec.a_transposed ? spec.m : spec.k, spec.lda) * spec.batch);
  const std::vector<double> b = rough(all(spec.b_transposed ? spec.k : spec.n, spec.ldb));
  const std::vector<T> first = converted<T>(a), second = converted<T>(b);
  const std::vector<T> wanted = product<T>(spec, Engine::tile, first, second, 1);
  for (const int threads : {1, 3}) {
    const std::vector<T> got = product<T>(spec, Engine::packed, first, second, threads);
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)), 0)
        << spec.m << " " << spec.n << " " << spec.k << " transposed " << spec.a_transposed << spec.b_transposed
        << " threads " << threads << " bytes " << sizeof(T);
  }
}

/// (But of products that the tile kernel does not compute as running sums.)
TEST(PackedMatmul, HasTheBitsOfTheTileKernel) {
  if (tile_kernels().packed.vectors == 0) GTEST_SKIP() << "this processor has no kernels of panels";
  for (const auto& [m, n, k] : sizes) {
    for (int form = 0; form < 8; ++form) {
      MatmulSpec spec = matmul(DType::Float32, m, n, k, form & 1, form & 2, form & 4 ? 3 : 0);
      if (dots_pay(spec) || sweep_pays(spec)) continue;
      spec.accumulate = form & 4;
      spec.epilogue.bias = form != 1;
      spec.epilogue.activation = form & 2 ? Activation::relu : Activation::none;
      expect_bits_of_tiles<float>(spec);
      spec.type = DType::Float64;
      expect_bits_of_tiles<double>(spec);
    }
  }
}

TEST(PackedMatmul, AnswersLargeProductsWhereVectorsAreMultipliedInPairs) {
  const auto engine = [](const MatmulSpec& spec) { return std::string(prepare_matmul(spec)->engine()); };
  for (const DType type : {DType::Float32, DType::Float64}) {
    const bool large = engine(matmul(type, 512, 512, 512, false, true)) == "packed";
    EXPECT_EQ(large, multiplies_widest_in_pairs() && tile_kernels().packed.vectors > 0);
    EXPECT_NE(engine(matmul(type, 32, 512, 512, false, true)), "packed");
  }
}

/// Few items are cut inside.
TEST(PackedMatmul, ItemsThatShareTheirBHaveTheBitsOfTheTileKernel) {
  if (tile_kernels().packed.vectors == 0) GTEST_SKIP() << "this processor has no kernels of panels";
  for (const int64_t batch : {2, 5}) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{49, 9, 17}, {130, 257, 70}, {300, 40, 1030}, {900, 33, 300}}) {
      for (int form = 0; form < 4; ++form) {
        MatmulSpec spec = matmul(DType::Float32, m, n, k, form & 1, form & 2, 0);
        if (dots_pay(spec) || sweep_pays(spec)) continue;
        spec.batch = batch;
        spec.a_batch_stride = m * k;
        spec.c_batch_stride = m * n + 5;
        spec.accumulate = form == 2;
        spec.epilogue.bias = form != 1;
        expect_bits_of_tiles<float>(spec);
        spec.type = DType::Float64;
        expect_bits_of_tiles<double>(spec);
      }
    }
  }
}

TEST(PackedMatmul, ItemsThatShareTheirBAreAnsweredWhereVectorsAreMultipliedInPairs) {
  MatmulSpec spec = matmul(DType::Float32, 784, 512, 128, false, false);
  spec.batch = 8;
  spec.a_batch_stride = spec.m * spec.k;
  spec.c_batch_stride = spec.m * spec.n;
  const bool packed = std::string(prepare_matmul(spec)->engine()) == "packed";
  EXPECT_EQ(packed, multiplies_widest_in_pairs() && tile_kernels().packed.vectors > 0);
}

TEST(PackedMatmul, BatchesOfSeveralBAndEmptyProductsAreRefused) {
  MatmulSpec spec = matmul(DType::Float32, 4, 4, 4, false, false);
  spec.batch = 2;
  spec.b_batch_stride = 16;
  EXPECT_THROW(prepare_matmul(spec, Engine::packed), Error);
  EXPECT_THROW(prepare_matmul(matmul(DType::Float32, 4, 0, 4, false, false), Engine::packed), Error);
}

}  // namespace
}  // namespace rosin::engines
