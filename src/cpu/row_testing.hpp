// For tests of convolutions by machine code: with registers of 8 lanes and of 16, where the processor has them; what
// they read, and gradients by weights as they are defined.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/instruction_set.hpp"
#include "cpu/machine_loop.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::cpu {

class OfRegisters : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!machine_code_works()) GTEST_SKIP() << "this processor has no AVX2, or ROSIN_JIT is 0";
    if (GetParam() == 16 && best_instruction_set() != InstructionSet::widest) GTEST_SKIP() << "there is no AVX-512";
  }
};

inline std::string lanes_name(const ::testing::TestParamInfo<int>& test) {
  return "Of" + std::to_string(test.param) + "Lanes";
}

/// What a call reads, in CWHN.
struct Values {
  std::vector<float> first, weights, bias, residual, center, factor, shift;

  explicit Values(const engines::ConvSpec& s) {
    const bool forward = s.kind == engines::ConvKind::forward;
    const std::vector<int64_t> counts = engines::conv_counts(s);
    first = engines::rough_values(counts[forward ? 0 : 2], 1);
    weights = engines::rough_values(counts[1], 2);
    const int64_t channels = forward ? s.out_channels : s.in_channels;
    bias = engines::rough_values(channels, 3);
    center = engines::rough_values(channels, 5);
    factor = engines::rough_values(channels, 6);
    shift = engines::rough_values(channels, 7);
    residual = engines::rough_values(counts[forward ? 2 : 0], 4);
  }

  std::vector<float> by(const engines::VendorCall& call, int threads = 1) const {
    std::vector<float> result(residual.size(), 7.0f);
    engines::VendorBuffers buffers{first.data(), weights.data(), bias.data(), result.data(), nullptr, residual.data()};
    buffers.center = center.data();
    buffers.factor = factor.data();
    buffers.shift = shift.data();
    execute(call, buffers, threads, threads > 1);
    return result;
  }
};

inline constexpr plan::Epilogue epilogues[] = {
    {},
    {.bias = true},
    {.residual = true},
    {.activation = plan::Activation::relu},
    {.bias = true, .activation = plan::Activation::tanh},
    {.bias = true, .residual = true, .activation = plan::Activation::relu6},
    {.factor = true},
    {.residual = true, .activation = plan::Activation::tanh, .center = true},
    {.activation = plan::Activation::relu, .center = true, .factor = true, .shift = true},
    {.bias = true, .center = true, .shift = true}};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A gradient by weights.
inline engines::ConvSpec weights_of(int64_t batch, int64_t in, int64_t out, const std::vector<engines::ConvDim>& dims) {
  engines::ConvSpec spec = engines::conv_of(batch, in, out, 1, dims);
  spec.kind = engines::ConvKind::backward_weights;
  return spec;
}

/// What it reads.
struct Gradient {
  std::vector<float> x, dy;

  explicit Gradient(const engines::ConvSpec& spec)
      : x(engines::rough_values(engines::conv_counts(spec)[0], 1)),
        dy(engines::rough_values(engines::conv_counts(spec)[2], 2)) {}

  std::vector<float> by(const engines::VendorCall& call, const engines::ConvSpec& spec, int threads = 1) const {
    std::vector<float> result(static_cast<size_t>(engines::conv_counts(spec)[1]), 7.0f);
    execute(call, {x.data(), dy.data(), nullptr, result.data(), nullptr}, threads, threads > 1);
    return result;
  }

  std::vector<double> as_defined(const engines::ConvSpec& spec) const {
    using engines::count_of;
    const int64_t taps = count_of(spec.kernel), in = spec.in_channels, out = spec.out_channels;
    std::vector<double> weights(static_cast<size_t>(taps * in * out));
    for (int64_t result = 0; result < spec.batch * count_of(spec.out); ++result) {
      const int64_t image = result / count_of(spec.out), place = result % count_of(spec.out);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t element = engines::place_of(spec, place, tap);
        if (element < 0) continue;
        const float* const from = &x[static_cast<size_t>((image * count_of(spec.in) + element) * in)];
        const float* const with = &dy[static_cast<size_t>(result * out)];
        double* const to = &weights[static_cast<size_t>(spec.flipped ? taps - 1 - tap : tap)];
        for (int64_t o = 0; o < out; ++o) {
          for (int64_t i = 0; i < in; ++i) to[(o * in + i) * taps] += static_cast<double>(from[i]) * with[o];
        }
      }
    }
    return weights;
  }
};

/// Some are finite, and some not; what is not is so in the same way.
inline void expect_as_finite(const std::vector<float>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  int64_t finite = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    finite += std::isfinite(wanted[i]);
    EXPECT_TRUE(std::isfinite(wanted[i]) ? std::abs(got[i] - wanted[i]) < 1e-4 : !std::isfinite(got[i])) << i;
    EXPECT_EQ(std::isnan(got[i]), std::isnan(wanted[i])) << i;
  }
  EXPECT_GT(finite, 0);
  EXPECT_LT(finite, static_cast<int64_t>(got.size()));
}

}  // namespace rosin::cpu
