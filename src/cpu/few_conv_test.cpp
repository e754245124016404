// Convolutions of images of one channel to few by machine code, with AVX-512 and with AVX2: sums have the bits of the
// tile kernel, gradients by weights are as defined.
#include "cpu/few_conv.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cpu/row_testing.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvSpec;

/// Channels that are lanes of one phase, of three, and of many; rows of one tile and of several, and of less than a
/// register; rows that are taken four at a time and that are left; images of one band and of several; paddings wider
/// than taps.
std::vector<std::vector<engines::ConvDim>> sizes() {
  return {{{28, 5, 1, 1, 2, 2}, {28, 5, 1, 1, 2, 2}},
          {{28, 5}, {27, 5}},
          {{13, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}},
          {{130, 3, 1, 1, 1, 1}, {21, 3, 1, 1, 1, 1}},
          {{7, 7, 1, 1, 3, 3}, {6, 2, 1, 1, 1, 0}},
          {{20, 3, 1, 1, 0, 5}, {11, 7, 1, 1, 4, 7}},
          {{1, 1}, {1, 1}},
          {{3, 2, 1, 1, 4, 4}, {2, 3, 1, 1, 5, 5}}};
}
constexpr int64_t channel_counts[] = {1, 2, 3, 5, 6, 7, 8, 12, 15};

class FewChannels : public OfRegisters {
 protected:
  std::unique_ptr<engines::VendorCall> prepared(ConvSpec spec) const {
    spec.activation = &engines::add_one;
    auto call = prepare_few_conv(spec, GetParam());
    EXPECT_TRUE(!call || call->engine() == std::string("few"));
    return call;
  }
  /// Calls visit(spec) for the specs whose code can be written.
  template <class Visit> void each(engines::ConvKind kind, Visit visit) const {
    int64_t seen = 0;
    for (const auto& dims : sizes()) {
      for (const int64_t channels : channel_counts) {
        ConvSpec spec = engines::conv_of(3, 1, channels, 1, dims);
        spec.kind = kind;
        if (!prepared(spec)) continue;
        ++seen;
        for (const bool flipped : {false, true}) {
          spec.flipped = flipped;
          SCOPED_TRACE("width " + std::to_string(spec.in[0]) + ", channels " + std::to_string(channels) + ", flipped " +
                       std::to_string(flipped));
          visit(spec);
        }
      }
    }
    EXPECT_GT(seen, GetParam() == 16 ? 60 : 40);
  }
};
INSTANTIATE_TEST_SUITE_P(Registers, FewChannels, ::testing::Values(8, 16), lanes_name);

TEST_P(FewChannels, SumsHaveTheBitsOfTheTileKernel) {
  each(engines::ConvKind::forward, [&](ConvSpec spec) {
    const Values values(spec);
    for (const plan::Epilogue& epilogue : epilogues) {
      spec.epilogue = epilogue;
      spec.activation = &engines::add_one;
      EXPECT_TRUE(same_bits(values.by(*prepared(spec), spec.flipped ? 3 : 1),
                            values.by(*engines::prepare_conv(spec, engines::Engine::tile))))
          << "epilogue " << (&epilogue - epilogues);
    }
  });
}

TEST_P(FewChannels, GradientsByWeightsAreAsDefined) {
  each(engines::ConvKind::backward_weights, [&](const ConvSpec& spec) {
    const Gradient gradient(spec);  // of sums in lanes that may be larger than what they add up to
    engines::expect_close(gradient.by(*prepared(spec), spec), gradient.as_defined(spec), 1e-4, "gradient");
  });
}

TEST_P(FewChannels, GradientsHaveTheSameBitsForAnyNumberOfThreads) {
  const ConvSpec spec = weights_of(40, 1, 6, {{28, 5, 1, 1, 2, 2}, {28, 5, 1, 1, 2, 2}});
  EXPECT_GT(prepared(spec)->chunks(), 3);
  const Gradient gradient(spec);
  const std::vector<float> wanted = gradient.by(*prepared(spec), spec);
  for (const int threads : {2, 3, 7}) EXPECT_TRUE(same_bits(gradient.by(*prepared(spec), spec, threads), wanted));
}

/// Padding is no product, so that what is not finite reaches only what it is multiplied by.
TEST_P(FewChannels, WhatIsNotFiniteGivesWhatTheDefinitionGives) {
  ConvSpec spec = engines::conv_of(2, 1, 3, 1, {{9, 3, 1, 1, 1, 1}, {8, 3, 1, 1, 1, 1}});
  for (const float wrong : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Values values(spec);
    values.weights[0] = wrong;
    const std::vector<float> by_tiles = values.by(*engines::prepare_conv(spec, engines::Engine::tile));
    expect_as_finite(values.by(*prepared(spec)), {by_tiles.begin(), by_tiles.end()});
  }
  spec.kind = engines::ConvKind::backward_weights;
  Gradient gradient(spec);
  gradient.x[3] = std::numeric_limits<float>::infinity();
  gradient.dy[0] = std::numeric_limits<float>::quiet_NaN();
  expect_as_finite(gradient.by(*prepared(spec), spec), gradient.as_defined(spec));
}

TEST_P(FewChannels, OtherConvolutionsAreLeftToOthers) {
  const std::vector<engines::ConvDim> usual{{28, 5, 1, 1, 2, 2}, {28, 5, 1, 1, 2, 2}};
  EXPECT_NE(prepared(engines::conv_of(2, 1, 6, 1, usual)), nullptr);
  EXPECT_EQ(prepared(engines::conv_of(2, 1, GetParam(), 1, usual)), nullptr) << "whole registers";
  EXPECT_EQ(prepared(engines::conv_of(2, 2, 6, 1, usual)), nullptr) << "two channels";
  EXPECT_EQ(prepared(engines::conv_of(2, 2, 2, 2, usual)), nullptr) << "groups";
  EXPECT_EQ(prepared(engines::conv_of(0, 1, 6, 1, usual)), nullptr) << "no images";
  EXPECT_EQ(prepared(engines::conv_of(2, 1, 6, 1, {{28, 5}})), nullptr) << "one dim";
  EXPECT_EQ(prepared(engines::conv_of(2, 1, 6, 1, {{28, 5, 2}, {28, 5}})), nullptr) << "steps of two";
  EXPECT_EQ(prepared(engines::conv_of(2, 1, 6, 1, {{28, 5}, {28, 5, 1, 2}})), nullptr) << "wide taps";
  EXPECT_EQ(prepared(engines::conv_of(1, 1, 6, 1, {{5000, 3}, {9, 3}})), nullptr) << "long rows";
  ConvSpec of_images = engines::conv_of(2, 1, 6, 1, usual);
  of_images.kind = engines::ConvKind::backward_data;
  EXPECT_EQ(prepared(of_images), nullptr);
}

}  // namespace
}  // namespace rosin::cpu
