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

using engines::ConvSpec;

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

std::vector<float> by_rows(const Gradient& gradient, const ConvSpec& spec, int64_t block, int threads = 1) {
  const auto call = prepare_row_conv(spec, block);
  if (!call) return {};
  EXPECT_STREQ(call->engine(), "rows");
  return gradient.by(*call, spec, threads);
}

class RowWeightGradients : public OfRegisters {};
INSTANTIATE_TEST_SUITE_P(Registers, RowWeightGradients, ::testing::Values(8, 16), lanes_name);

TEST_P(RowWeightGradients, AreAsDefined) {
  for (ConvSpec spec : specs_of_weights()) {
    const Gradient gradient(spec);
    for (const bool flipped : {false, true}) {
      spec.flipped = flipped;
      engines::expect_close(by_rows(gradient, spec, GetParam()), gradient.as_defined(spec), 1e-5,
                            "width " + std::to_string(spec.in[0]) + ", channels " + std::to_string(spec.in_channels) +
                                " and " + std::to_string(spec.out_channels) + ", flipped " + std::to_string(flipped));
    }
  }
}

TEST_P(RowWeightGradients, HaveTheSameBitsForAnyNumberOfThreads) {
  const ConvSpec spec = weights_of(2, 64, 96, {{23, 3, 2, 1, 1, 1}, {21, 3, 2, 1, 1, 1}});
  EXPECT_GT(prepare_row_conv(spec, GetParam())->chunks(), 3);
  const Gradient gradient(spec);
  const std::vector<float> wanted = by_rows(gradient, spec, GetParam());
  for (const int threads : {2, 3, 7}) {
    const std::vector<float> got = by_rows(gradient, spec, GetParam(), threads);
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
  const std::vector<float> got = by_rows(gradient, spec, GetParam());
  const std::vector<double> wanted = gradient.as_defined(spec);
  expect_as_finite(got, wanted);
}

}  // namespace
}  // namespace rosin::cpu
