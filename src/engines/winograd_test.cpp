// Winograd's filtering: where it is chosen, that no number of threads changes it, and how exact its sums are. Values
// beside the plain definition: vendor_test.cpp; values that are not finite: not_finite_test.cpp.
#include "engines/winograd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/half.hpp>

#include "engines/onednn.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// Images of these sizes, kernels of 3x3, one pixel of padding.
ConvSpec convolution(ConvKind kind, int64_t batch, int64_t in, int64_t out, int64_t w, int64_t h) {
  ConvSpec spec;
  spec.kind = kind;
  spec.batch = batch, spec.in_channels = in, spec.out_channels = out;
  spec.in[0] = spec.out[0] = w, spec.in[1] = spec.out[1] = h;
  for (int d = 0; d < 2; ++d) spec.kernel[d] = 3, spec.pad_low[d] = spec.pad_high[d] = 1;
  return spec;
}

constexpr ConvKind kinds[] = {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights};

struct Data {
  std::vector<float> first, second;
  size_t results = 0;
};

Data data_for(const ConvSpec& spec) {
  static std::mt19937 generator(5);
  std::normal_distribution<float> normal;
  const auto values = [&](int64_t count) {
    std::vector<float> made(static_cast<size_t>(count));
    for (float& value : made) value = normal(generator);
    return made;
  };
  const int64_t pixels = spec.batch * spec.in[0] * spec.in[1];
  const int64_t sizes[] = {pixels * spec.in_channels, 9 * spec.in_channels * spec.out_channels,
                           pixels * spec.out_channels};
  if (spec.kind == ConvKind::forward) return {values(sizes[0]), values(sizes[1]), static_cast<size_t>(sizes[2])};
  if (spec.kind == ConvKind::backward_data) return {values(sizes[2]), values(sizes[1]), static_cast<size_t>(sizes[0])};
  return {values(sizes[0]), values(sizes[2]), static_cast<size_t>(sizes[1])};
}

std::vector<BFloat> halves(const std::vector<float>& values) {
  std::vector<BFloat> result;
  for (const float value : values) result.push_back(BFloat(value));
  return result;
}

TEST(Winograd, IsChosenForThreeByThreeKernelsOfManyChannels) {
  for (const ConvKind kind : kinds) {
    EXPECT_STREQ(prepare_conv(convolution(kind, 8, 64, 64, 32, 32))->engine(), "winograd");
    EXPECT_STREQ(prepare_conv(convolution(kind, 2, 61, 67, 17, 13))->engine(), "winograd");
    for (const auto change :
         {+[](ConvSpec& s) { s.stride[0] = s.stride[1] = 2, s.out[0] = s.out[1] = 16; },
          +[](ConvSpec& s) { s.kernel[0] = 1, s.pad_low[0] = s.pad_high[0] = 0; },
          +[](ConvSpec& s) { s.dilation[1] = 2, s.pad_low[1] = s.pad_high[1] = 2; }, +[](ConvSpec& s) { s.groups = 2; },
          +[](ConvSpec& s) { s.in_channels = 3; }, +[](ConvSpec& s) { s.type = DType::Float64; }}) {
      ConvSpec other = convolution(kind, 8, 64, 64, 32, 32);
      change(other);
      EXPECT_STRNE(prepare_conv(other)->engine(), "winograd");
    }
  }
}

/// By Float32, unless the processor multiplies BFloat16 by tiles; in pieces, as there are many elements.
TEST(Winograd, IsChosenForBFloat16WhereThatIsFaster) {
  for (const ConvKind kind : kinds) {
    ConvSpec spec = convolution(kind, 2, 64, 64, 40, 40);
    const Data data = data_for(spec);
    const std::vector<BFloat> first = halves(data.first), second = halves(data.second);
    std::vector<BFloat> found(data.results);
    spec.type = DType::BFloat16;
    const auto call = prepare_conv(spec);
    EXPECT_EQ(std::string(call->engine()) == "winograd", onednn_bfloat_products() != BFloatProducts::tiles);
    execute(*call, {first.data(), second.data(), nullptr, found.data(), nullptr});
    const std::vector<double> exact_first(first.begin(), first.end()), exact_second(second.begin(), second.end());
    std::vector<double> expected(data.results);
    spec.type = DType::Float64;
    execute(*prepare_conv(spec), {exact_first.data(), exact_second.data(), nullptr, expected.data(), nullptr});
    expect_close(found, expected, 4e-3, "BFloat16");
  }
}

TEST(Winograd, WhatItCannotComputeIsRefused) {
  ConvSpec spec = convolution(ConvKind::forward, 1, 32, 32, 8, 8);
  spec.kernel[0] = 5, spec.pad_low[0] = spec.pad_high[0] = 2;
  EXPECT_THROW(prepare_conv(spec, Engine::winograd), Error);
}

TEST(Winograd, GivesTheSameBitsForAnyNumberOfThreadsAndAnyOrderOfChunks) {
  for (const ConvKind kind : kinds) {
    for (const ConvSpec& spec : {convolution(kind, 5, 67, 61, 31, 29), convolution(kind, 1, 187, 163, 13, 9)}) {
      const Data data = data_for(spec);
      const auto call = prepare_conv(spec, Engine::winograd);
      EXPECT_GT(call->chunks(), 1);
      std::vector<std::vector<float>> results;
      for (int way = 0; way < 3; ++way) {
        std::vector<float> result(data.results);
        execute(*call, {data.first.data(), data.second.data(), nullptr, result.data(), nullptr}, way == 2 ? 3 : 1,
                way == 1);
        results.push_back(result);
      }
      for (int way = 1; way < 3; ++way) {
        EXPECT_EQ(std::memcmp(results[0].data(), results[static_cast<size_t>(way)].data(), data.results * 4), 0);
      }
    }
  }
}

/// The largest error, beside the root of the mean square of the exact results.
double error_of(const ConvSpec& spec, const Data& data, Engine engine) {
  ConvSpec exact = spec;
  exact.type = DType::Float64;
  const std::vector<double> first(data.first.begin(), data.first.end()), second(data.second.begin(), data.second.end());
  std::vector<double> expected(data.results);
  std::vector<float> found(data.results);
  execute(*prepare_conv(exact, Engine::plain), {first.data(), second.data(), nullptr, expected.data(), nullptr});
  execute(*prepare_conv(spec, engine), {data.first.data(), data.second.data(), nullptr, found.data(), nullptr});
  double most = 0, squares = 0;
  for (size_t i = 0; i < data.results; ++i) {
    most = std::max(most, std::abs(expected[i] - static_cast<double>(found[i])));
    squares += expected[i] * expected[i];
  }
  return most / std::sqrt(squares / static_cast<double>(data.results));
}

/// The definition's sums by the tile kernel, one running sum each, are what it is measured by. Both ways of cutting the
/// work: many squares of few channels, few of many.
TEST(Winograd, IsAsExactAsTheDefinition) {
  for (const ConvKind kind : kinds) {
    for (const ConvSpec& spec : {convolution(kind, 4, 64, 64, 30, 30), convolution(kind, 1, 200, 180, 12, 12)}) {
      const Data data = data_for(spec);
      const double winograd = error_of(spec, data, Engine::winograd), definition = error_of(spec, data, Engine::tile);
      EXPECT_LT(winograd, 5 * definition) << static_cast<int>(kind) << " of " << spec.in_channels << " channels";
      EXPECT_LT(winograd, 2e-5) << static_cast<int>(kind) << " of " << spec.in_channels << " channels";
    }
  }
}

/// Few squares and many, which are cut into chunks in other ways, are tried with numbers that are not finite: results
/// are then those of the definition.
TEST(Winograd, WhatIsNotFiniteReachesThoseResultsThatMultiplyIt) {
  for (const ConvKind kind : kinds) {
    for (const int64_t size : {10, 59}) {
      const ConvSpec spec = convolution(kind, 1, 9, 7, size, size);
      for (const bool of_second : {false, true}) {
        Data data = data_for(spec);
        std::vector<float>& values = of_second ? data.second : data.first;
        values[values.size() / 2] = std::numeric_limits<float>::infinity();
        std::vector<float> expected(data.results), found(data.results);
        execute(*prepare_conv(spec, Engine::tile),
                {data.first.data(), data.second.data(), nullptr, expected.data(), nullptr});
        execute(*prepare_conv(spec, Engine::winograd),
                {data.first.data(), data.second.data(), nullptr, found.data(), nullptr});
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_EQ(std::isfinite(found[i]), std::isfinite(expected[i])) << static_cast<int>(kind) << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rosin::engines
