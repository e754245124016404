// Gradients by weights by machine code, with AVX-512 and with AVX2, against the definition: channels that fill
// registers and do not, few and many on either side; images that are taken several at a time, by rows, and by parts of
// rows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cpu/row_conv.hpp"
#include "cpu/row_testing.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::cpu {
namespace {

using engines::conv_counts;
using engines::ConvKind;
using engines::ConvSpec;
using engines::count_of;

ConvSpec weights_of(int64_t batch, int64_t in, int64_t out, const std::vector<engines::ConvDim>& dims) {
  ConvSpec spec = engines::conv_of(batch, in, out, 1, dims);
  spec.kind = ConvKind::backward_weights;
  return spec;
}

std::vector<ConvSpec> specs_of_weights() {
  return {weights_of(1, 16, 16, {{9, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}}),
          weights_of(3, 32, 48, {{15, 3, 2, 1, 1, 1}, {14, 3, 2, 1, 1, 1}}),
          weights_of(50, 48, 16, {{7, 3, 1, 1, 1, 1}, {6, 2, 1, 1, 1, 0}}),
          weights_of(11, 64, 32, {{7, 1, 2}, {5, 1, 3}}),
          weights_of(2, 112, 16, {{31, 7, 2, 1, 3, 3}, {29, 7, 2, 1, 3, 3}}),
          weights_of(2, 16, 32, {{90, 5, 1, 2, 4, 4}, {12, 3, 1, 3, 3, 3}}),
          weights_of(1, 32, 16, {{700, 3, 2, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}),
          weights_of(2, 80, 48, {{300, 9, 1, 1, 4, 4}}),
          weights_of(2, 16, 16, {{6, 5, 3, 2, 4, 7}, {3, 2, 2, 3, 2, 3}}),
          weights_of(2, 32, 16, {{2, 2, 1, 1, 5, 5}, {3, 3, 2, 1, 3, 5}}),
          weights_of(4, 96, 80, {{20, 1, 1, 1, 1, 1}, {19, 1}}),
          weights_of(3, 272, 288, {{13, 3, 2, 1, 1, 0}, {12, 2, 1, 1, 1, 1}}),
          weights_of(9, 320, 32, {{5, 1, 2}, {4, 1, 1}}),
          weights_of(1, 16, 304, {{1, 1}, {1, 1}})};
}

struct Gradient {
  std::vector<float> x, dy;

  explicit Gradient(const ConvSpec& spec)
      : x(engines::rough_values(conv_counts(spec)[0], 1)), dy(engines::rough_values(conv_counts(spec)[2], 2)) {}

  std::vector<float> by_rows(const ConvSpec& spec, int64_t block, int threads = 1) const {
    const auto call = prepare_row_conv(spec, block);
    if (!call) return {};
    EXPECT_STREQ(call->engine(), "rows");
    std::vector<float> result(static_cast<size_t>(conv_counts(spec)[1]), 7.0f);
    execute(*call, {x.data(), dy.data(), nullptr, result.data(), nullptr}, threads, threads > 1);
    return result;
  }

  std::vector<double> as_defined(const ConvSpec& spec) const {
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

class RowWeightGradients : public OfRegisters {};
INSTANTIATE_TEST_SUITE_P(Registers, RowWeightGradients, ::testing::Values(8, 16), lanes_name);

TEST_P(RowWeightGradients, AreAsDefined) {
  for (ConvSpec spec : specs_of_weights()) {
    const Gradient gradient(spec);
    for (const bool flipped : {false, true}) {
      spec.flipped = flipped;
      engines::expect_close(gradient.by_rows(spec, GetParam()), gradient.as_defined(spec), 1e-5,
                            "width " + std::to_string(spec.in[0]) + ", channels " + std::to_string(spec.in_channels) +
                                " and " + std::to_string(spec.out_channels) + ", flipped " + std::to_string(flipped));
    }
  }
}

TEST_P(RowWeightGradients, HaveTheSameBitsForAnyNumberOfThreads) {
  const ConvSpec spec = weights_of(2, 64, 96, {{23, 3, 2, 1, 1, 1}, {21, 3, 2, 1, 1, 1}});
  EXPECT_GT(prepare_row_conv(spec, GetParam())->chunks(), 3);
  const Gradient gradient(spec);
  const std::vector<float> wanted = gradient.by_rows(spec, GetParam());
  for (const int threads : {2, 3, 7}) {
    const std::vector<float> got = gradient.by_rows(spec, GetParam(), threads);
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)), 0) << threads;
  }
}

TEST_P(RowWeightGradients, WhatFillsNoRegistersOrIsTooLargeIsLeftToOthers) {
  EXPECT_EQ(prepare_row_conv(weights_of(1, 20, 32, {{9, 3}, {9, 3}}), GetParam()), nullptr);
  EXPECT_EQ(prepare_row_conv(weights_of(1, 32, 20, {{9, 3}, {9, 3}}), GetParam()), nullptr);
  EXPECT_EQ(prepare_row_conv(weights_of(2, 2048, 32, {{1000, 1, 200}, {1000, 1, 200}}), GetParam()), nullptr);
}

/// An element is multiplied by the gradients of the windows that it lies in, and no padding by any.
TEST_P(RowWeightGradients, WhatIsNotFiniteStaysInItsChannels) {
  const ConvSpec spec = weights_of(2, 32, 16, {{9, 3, 1, 1, 1, 1}, {8, 3, 2, 1, 1, 1}});
  Gradient gradient(spec);
  gradient.x[3] = std::numeric_limits<float>::infinity();
  gradient.dy[7] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> got = gradient.by_rows(spec, GetParam());
  const std::vector<double> wanted = gradient.as_defined(spec);
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

}  // namespace
}  // namespace rosin::cpu
