// Convolutions of single channels in logical order against the definition, written here in Float64; and the promises
// about epilogues, threads and bits. What is not finite is in not_finite_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

ConvSpec spec_of(int64_t batch, int64_t channels, int64_t multiplier, const std::vector<ConvDim>& dims) {
  ConvSpec spec = conv_of(batch, channels, channels * multiplier, channels, dims);
  spec.logical = true;
  return spec;
}

/// Rows shorter and longer than a vector, rows that make no group, blocks of many rows, windows that lie outside.
std::vector<ConvSpec> specs() {
  return {spec_of(2, 3, 1, {{56, 3, 1, 1, 1, 1}, {56, 3, 1, 1, 1, 1}}),
          spec_of(1, 2, 1, {{112, 3, 1, 1, 1, 1}, {113, 3, 1, 1, 1, 1}}),
          spec_of(3, 2, 1, {{7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}),
          spec_of(2, 3, 2, {{9, 3, 1, 1, 1, 0}, {6, 3, 1, 1, 0, 1}}),
          spec_of(2, 3, 1, {{33, 3, 2, 1, 1, 1}, {18, 3, 2, 1, 1, 1}}),
          spec_of(2, 2, 3, {{21, 5, 3, 2, 4, 1}, {13, 2, 2, 3, 0, 2}}),
          spec_of(2, 2, 1, {{20, 3, 1, 2, 2, 2}, {20, 3, 1, 2, 2, 2}}),
          spec_of(2, 2, 1, {{4, 1, 3}, {5, 1, 2}}),
          spec_of(2, 2, 1, {{3, 2, 1, 1, 4, 4}, {2, 3, 2, 1, 3, 5}}),
          spec_of(2, 2, 2, {{1, 1}, {1, 1}}),
          spec_of(1, 2, 1, {{2, 3, 1, 1, 1, 1}, {2, 3, 1, 1, 1, 1}}),
          spec_of(3, 5, 1, {{41, 4, 1, 1, 2, 1}}),
          spec_of(3, 5, 2, {{40, 3, 4, 3, 3, 0}}),
          spec_of(2, 2, 1, {{12, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}),
          spec_of(1, 2, 2, {{9, 2, 2, 1, 0, 1}, {5, 3, 1, 2, 2, 1}, {6, 2, 2, 2, 1, 1}})};
}

std::vector<double> defined(const ConvSpec& s, const std::vector<double>& first, const std::vector<double>& second) {
  const int64_t taps = count_of(s.kernel), outs = count_of(s.out), multiplier = s.out_channels / s.in_channels;
  const size_t* role = conv_roles[static_cast<int>(s.kind)];
  std::vector<double> result(static_cast<size_t>(conv_counts(s)[role[2]]));
  for (int64_t plane = 0; plane < s.batch * s.out_channels; ++plane) {
    const int64_t channel = plane % s.out_channels;
    for (int64_t out = 0; out < outs; ++out) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = place_of(s, out, tap);
        if (place < 0) continue;
        const auto x = static_cast<size_t>(plane / multiplier * count_of(s.in) + place);
        const auto w = static_cast<size_t>(channel * taps + (s.flipped ? taps - 1 - tap : tap));
        const size_t at[] = {x, w, static_cast<size_t>(plane * outs + out)};
        result[at[role[2]]] += first[at[role[0]]] * second[at[role[1]]];
      }
    }
  }
  return result;
}

TEST(PlaneConv, AllKindsAgreeWithTheDefinition) {
  for (ConvSpec spec : specs()) {
    EXPECT_STREQ(prepare_conv(spec)->engine(), "planes");
    for (const bool flipped : {false, true}) {
      spec.flipped = flipped;
      spec.type = DType::Float32;
      check_conv_kinds<float>(spec, 3e-6, conv_counts, defined);
      spec.type = DType::Float64;
      check_conv_kinds<double>(spec, 1e-14, conv_counts, defined);
    }
  }
}

/// What the epilogue makes of results: channels of so many points.
void finish_by_hand(std::vector<float>& values, const Epilogue& epilogue, const std::vector<float>& bias,
                    const std::vector<float>& residual, int64_t points) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (epilogue.bias) values[i] += bias[i / static_cast<size_t>(points) % bias.size()];
    if (epilogue.residual) values[i] += residual[i];
    if (epilogue.activation == Activation::relu) values[i] = values[i] < 0 ? 0 : values[i];
    if (epilogue.activation == Activation::tanh) values[i] += 1;  // see add_one
  }
}

TEST(PlaneConv, AnEpilogueHasTheBitsOfTheSameStepsBehindTheConvolution) {
  constexpr Epilogue epilogues[] = {{.bias = true},
                                    {.residual = true},
                                    {.activation = Activation::relu},
                                    {.bias = true, .activation = Activation::tanh},
                                    {.bias = true, .activation = Activation::relu},
                                    {.bias = true, .residual = true, .activation = Activation::relu}};
  for (ConvSpec spec : specs()) {
    for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data}) {
      spec.kind = kind;
      const bool forward = kind == ConvKind::forward;
      const auto first = rough_values(conv_counts(spec)[forward ? 0 : 2], 1),
                 second = rough_values(conv_counts(spec)[1], 2);
      const auto residual = rough_values(conv_counts(spec)[forward ? 2 : 0], 3);
      const auto bias = rough_values(forward ? spec.out_channels : spec.in_channels, 4);
      std::vector<float> plain(residual.size());
      spec.epilogue = {};
      execute(*prepare_conv(spec), {first.data(), second.data(), nullptr, plain.data(), nullptr});
      for (const Epilogue& epilogue : epilogues) {
        spec.epilogue = epilogue;
        spec.activation = &add_one;
        std::vector<float> got(plain.size(), 7.0f), wanted = plain;
        finish_by_hand(wanted, epilogue, bias, residual, count_of(forward ? spec.out : spec.in));
        execute(*prepare_conv(spec), {first.data(), second.data(), bias.data(), got.data(), nullptr, residual.data()},
                2, true);
        EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0)
            << "width " << spec.in[0] << " epilogue " << (&epilogue - epilogues);
      }
    }
  }
}

TEST(PlaneConv, ResultsAreBitEqualForAnyNumberOfThreads) {
  ConvSpec spec = spec_of(9, 31, 2, {{30, 3, 1, 1, 1, 1}, {29, 3, 1, 1, 1, 1}});
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    spec.kind = kind;
    const size_t* role = conv_roles[static_cast<int>(kind)];
    const auto first = rough_values(conv_counts(spec)[role[0]], 1),
               second = rough_values(conv_counts(spec)[role[1]], 2);
    const auto call = prepare_conv(spec);
    EXPECT_GT(call->chunks(), 1);
    std::vector<float> results[2];
    for (const int threads : {1, 3}) {
      std::vector<float>& result = results[threads / 2];
      result.resize(static_cast<size_t>(conv_counts(spec)[role[2]]));
      execute(*call, {first.data(), second.data(), nullptr, result.data(), nullptr}, threads, threads == 3);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0);
  }
}

TEST(PlaneConv, ResultsHaveTheBitsOfTheTileKernelOfImagesWithChannelsFirst) {
  for (ConvSpec spec : specs()) {
    const auto x = rough_values(conv_counts(spec)[0], 1), w = rough_values(conv_counts(spec)[1], 2);
    std::vector<float> planes(static_cast<size_t>(conv_counts(spec)[2])), tiles(planes.size());
    execute(*prepare_conv(spec), {x.data(), w.data(), nullptr, planes.data(), nullptr});
    spec.logical = false;
    const auto first = turned(x, count_of(spec.in), spec.in_channels);
    execute(*prepare_conv(spec, Engine::tile), {first.data(), w.data(), nullptr, tiles.data(), nullptr});
    const auto wanted = turned(planes, count_of(spec.out), spec.out_channels);
    EXPECT_EQ(std::memcmp(tiles.data(), wanted.data(), tiles.size() * sizeof(float)), 0) << "width " << spec.in[0];
  }
}

TEST(PlaneConv, WeightsOfLargeFiltersHaveTheSameBitsWhereChannelsComeFirst) {
  const std::vector<ConvSpec> large = {spec_of(2, 35, 1, {{14, 7, 1, 1, 3, 3}, {13, 7, 1, 1, 3, 3}}),
                                       spec_of(3, 16, 2, {{9, 5, 2, 1, 2, 2}, {7, 3, 1, 2, 1, 1}}),
                                       spec_of(2, 5, 3, {{60, 31, 1, 1, 15, 15}}),
                                       spec_of(1, 17, 1, {{6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}, {4, 2}})};
  for (ConvSpec spec : large) {
    spec.kind = ConvKind::backward_weights;
    for (const bool flipped : {false, true}) {
      spec.flipped = flipped;
      spec.logical = true;
      const auto x = rough_values(conv_counts(spec)[0], 1), dy = rough_values(conv_counts(spec)[2], 2);
      std::vector<float> wanted(static_cast<size_t>(conv_counts(spec)[1])), got(wanted.size());
      execute(*prepare_conv(spec), {x.data(), dy.data(), nullptr, wanted.data(), nullptr});
      spec.logical = false;
      const auto first = turned(x, count_of(spec.in), spec.in_channels);
      const auto second = turned(dy, count_of(spec.out), spec.out_channels);
      const auto call = prepare_conv(spec);
      EXPECT_STREQ(call->engine(), "planes");
      execute(*call, {first.data(), second.data(), nullptr, got.data(), nullptr}, 2, true);
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0) << "width " << spec.in[0];
    }
  }
}

TEST(PlaneConv, OtherGroupsAreRefused) {
  ConvSpec spec = spec_of(1, 4, 1, {{5, 3}});
  spec.groups = 2;
  EXPECT_THROW(prepare_conv(spec), Error);
}

/// LeNet's first layer: a product takes a third of the time.
TEST(PlaneConv, LeavesGradientsByFiltersOfASingleChannelToProducts) {
  ConvSpec spec = spec_of(8, 1, 6, {{28, 5}, {28, 5}});
  spec.logical = false;
  spec.kind = ConvKind::backward_weights;
  EXPECT_STRNE(prepare_conv(spec)->engine(), "planes");
  spec.in_channels = spec.groups = 2, spec.out_channels = 12;
  EXPECT_STREQ(prepare_conv(spec)->engine(), "planes");
}

}  // namespace
}  // namespace rosin::engines
