// Products of BFloat16 in matrix registers: the bits of the definition where sums are exact, of any size, order, batch
// and number of threads; and what is not written. What is not finite is in not_finite_test.cpp.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/half.hpp>

#include "engines/tile.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

bool has_registers() { return amx_can(matmul(DType::BFloat16, 16, 16, 32, false, false)); }

/// m, n, k: one, parts of panels and whole ones, odd sums, chunks of rows and of columns, few columns, several blocks
/// of rows.
constexpr int64_t sizes[][3] = {{1, 1, 1},    {5, 3, 7},       {16, 16, 32},    {17, 15, 33},   {32, 32, 64},
                                {33, 48, 31}, {100, 257, 70},  {300, 40, 130},  {20, 1000, 90}, {640, 64, 300},
                                {4, 700, 65}, {1100, 30, 200}, {257, 300, 513}, {4200, 8, 1030}};

std::vector<BFloat> product(const MatmulSpec& spec, Engine engine, const std::vector<BFloat>& a,
                            const std::vector<BFloat>& b, int threads) {
  std::vector<BFloat> c(static_cast<size_t>((spec.batch - 1) * spec.c_batch_stride + spec.ldc * spec.n));
  for (size_t i = 0; i < c.size(); ++i) c[i] = BFloat(static_cast<float>(i % 13) / 8);
  const std::vector<BFloat> bias(static_cast<size_t>(spec.m), BFloat(-0.375f));
  execute(*prepare_matmul(spec, engine), {a.data(), b.data(), bias.data(), c.data(), nullptr}, threads, threads > 1);
  return c;
}

void expect_bits_of_the_definition(const MatmulSpec& spec) {
  const int64_t a_lines = spec.a_transposed ? spec.m : spec.k, b_lines = spec.b_transposed ? spec.k : spec.n;
  const auto a = converted<BFloat>(random_values((spec.batch - 1) * spec.a_batch_stride + a_lines * spec.lda));
  const auto b = converted<BFloat>(random_values((spec.batch - 1) * spec.b_batch_stride + b_lines * spec.ldb));
  const std::vector<BFloat> wanted = product(spec, Engine::plain, a, b, 1);
  for (const int threads : {1, 3}) {
    const std::vector<BFloat> got = product(spec, Engine::amx, a, b, threads);
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(BFloat)), 0)
        << spec.m << " " << spec.n << " " << spec.k << " batch " << spec.batch << " transposed " << spec.a_transposed
        << spec.b_transposed << " accumulate " << spec.accumulate << " threads " << threads;
  }
}

TEST(AmxMatmul, HasTheBitsOfTheDefinitionWhereSumsAreExact) {
  if (!has_registers()) GTEST_SKIP() << "this processor has no matrix registers";
  for (const auto& [m, n, k] : sizes) {
    for (int form = 0; form < 8; ++form) {
      MatmulSpec spec = matmul(DType::BFloat16, m, n, k, form & 1, form & 2, form & 4 ? 3 : 0);
      spec.accumulate = form & 4;
      spec.epilogue.bias = form != 1;
      spec.epilogue.activation = form & 2 ? Activation::relu : Activation::none;
      expect_bits_of_the_definition(spec);
    }
  }
}

TEST(AmxMatmul, MultipliesBatchesAndOperandsThatItemsShare) {
  if (!has_registers()) GTEST_SKIP() << "this processor has no matrix registers";
  for (int form = 0; form < 12; ++form) {
    for (const auto& [batch, rows] : {std::pair<int64_t, int64_t>{200, 45}, {3, 4000}}) {  // chunks of items, of parts
      MatmulSpec spec = matmul(DType::BFloat16, rows, 35, 40, form & 1, form & 2, 2);
      spec.batch = batch;
      spec.a_batch_stride = form / 4 == 1 ? 0 : (rows + 5) * 42;
      spec.b_batch_stride = form / 4 == 2 ? 0 : 45 * 50;
      spec.c_batch_stride = (rows + 2) * 35 + 5;
      EXPECT_GT(prepare_matmul(spec, Engine::amx)->chunks(), batch == 3 ? 3 : 1);
      expect_bits_of_the_definition(spec);
    }
  }
}

/// Images in CWHN of single points, of whole blocks of channels and others.
TEST(AmxMatmul, AnswersConvolutionsOfPoints) {
  if (!has_registers()) GTEST_SKIP() << "this processor has no matrix registers";
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{64, 32}, {7, 13}, {3, 64}}) {
      ConvSpec spec;
      spec.kind = kind;
      spec.type = DType::BFloat16;
      spec.in_channels = in, spec.out_channels = out, spec.batch = 2;
      spec.in[0] = spec.out[0] = 4, spec.in[1] = spec.out[1] = 6;
      const bool weights = kind == ConvKind::backward_weights, forward = kind == ConvKind::forward;
      spec.epilogue.bias = !weights;
      const int64_t x = 48 * in, y = 48 * out, w = in * out;
      const auto first = converted<BFloat>(random_values(kind == ConvKind::backward_data ? y : x));
      const auto second = converted<BFloat>(random_values(weights ? y : w));
      const auto bias = converted<BFloat>(random_values(forward ? out : in));
      const auto result = [&](Engine engine) {
        std::vector<BFloat> values(static_cast<size_t>(weights ? w : forward ? y : x));
        execute(*prepare_conv(spec, engine), {first.data(), second.data(), bias.data(), values.data(), nullptr}, 3);
        return values;
      };
      const auto wanted = result(Engine::plain), got = result(Engine::best);
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(BFloat)), 0) << in << " to " << out;
      EXPECT_STREQ(prepare_conv(spec)->engine(), "amx");
    }
  }
}

TEST(AmxMatmul, AnswersProductsOfSeveralLines) {
  const auto engine = [](const MatmulSpec& spec) { return std::string(prepare_matmul(spec)->engine()); };
  EXPECT_EQ(engine(matmul(DType::BFloat16, 64, 64, 64, false, false)) == "amx", has_registers());
  EXPECT_EQ(engine(matmul(DType::BFloat16, 16, 8, 512, true, false)) == "amx", has_registers());
  EXPECT_NE(engine(matmul(DType::BFloat16, 512, 1, 512, true, false)), "amx");
  EXPECT_NE(engine(matmul(DType::Float32, 64, 64, 64, false, false)), "amx");
}

TEST(AmxMatmul, OtherTypesAndEmptyProductsAreRefused) {
  EXPECT_THROW(prepare_matmul(matmul(DType::Float32, 4, 4, 4, false, false), Engine::amx), Error);
  EXPECT_THROW(prepare_matmul(matmul(DType::BFloat16, 4, 0, 4, false, false), Engine::amx), Error);
}

}  // namespace
}  // namespace rosin::engines
