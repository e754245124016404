// Convolutions by machine code: the bits of the same filters over planes (plane_conv.cpp), and over all channels those
// of the tile kernel, both of which are held to the definition in their own tests; with AVX-512 and with AVX2, whatever
// the epilogue, the number of threads and the values.
#include "cpu/row_conv.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <rosin/conv.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "cpu/row_testing.hpp"
#include "engines/converted.hpp"
#include "engines/vendor_testing.hpp"

namespace rosin::cpu {
namespace {

using engines::ConvKind;
using engines::ConvSpec;
using engines::count_of;
using engines::turned;
using plan::Epilogue;

ConvSpec spec_of(int64_t batch, int64_t channels, const std::vector<engines::ConvDim>& dims) {
  return engines::conv_of(batch, channels, channels, channels, dims);
}

/// Blocks that channels fill and do not; rows of one tile, of two, and of many that are alike; filters whose weights
/// have registers and do not; windows and rows that lie outside.
std::vector<ConvSpec> specs() {
  return {spec_of(2, 16, {{7, 5, 1, 1, 2, 2}, {7, 5, 1, 1, 2, 2}}),
          spec_of(1, 40, {{28, 3, 1, 1, 1, 1}, {29, 3, 1, 1, 1, 1}}),
          spec_of(2, 17, {{57, 3, 2, 1, 1, 1}, {56, 3, 2, 1, 1, 1}}),
          spec_of(3, 5, {{112, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}),
          spec_of(1, 33, {{60, 7, 1, 1, 3, 3}, {20, 7, 1, 1, 3, 3}}),
          spec_of(1, 8, {{90, 5, 2, 1, 2, 2}, {15, 5, 2, 1, 2, 2}}),
          spec_of(2, 7, {{75, 31, 1, 1, 15, 15}, {9, 2}}),
          spec_of(2, 24, {{21, 5, 3, 2, 4, 1}, {13, 2, 2, 3, 0, 2}}),
          spec_of(2, 3, {{80, 3, 5, 3, 7, 7}, {20, 3, 1, 2, 2, 2}}),
          spec_of(2, 19, {{4, 1, 3}, {5, 1, 2}}),
          spec_of(2, 6, {{3, 2, 1, 1, 4, 4}, {2, 3, 2, 1, 3, 5}}),
          spec_of(2, 2, {{1, 1}, {1, 1}}),
          spec_of(3, 5, {{41, 4, 1, 1, 2, 1}}),
          spec_of(1, 18, {{300, 3, 4, 3, 3, 0}})};
}

ConvSpec over_all(ConvSpec spec, int64_t in, int64_t out) {
  spec.groups = 1;
  spec.in_channels = in;
  spec.out_channels = out;
  return spec;
}

/// Channels that fill one group of registers, several, and none; sums over few channels and many; rows that are joined.
std::vector<ConvSpec> specs_over_all() {
  return {over_all(spec_of(2, 1, {{7, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}), 3, 16),
          over_all(spec_of(1, 1, {{30, 7, 2, 1, 3, 3}, {31, 7, 2, 1, 3, 3}}), 3, 40),
          over_all(spec_of(3, 1, {{13, 1}, {11, 1}}), 18, 24),
          over_all(spec_of(1, 1, {{28, 1}, {28, 1}}), 64, 100),
          over_all(spec_of(2, 1, {{56, 1, 2}, {20, 1, 2}}), 33, 130),
          over_all(spec_of(2, 1, {{40, 3, 1, 2, 2, 2}, {10, 3, 1, 3, 3, 3}}), 17, 50),
          over_all(spec_of(2, 1, {{21, 5, 3, 2, 4, 1}, {13, 2, 2, 3, 0, 2}}), 6, 5),
          over_all(spec_of(2, 1, {{3, 2, 1, 1, 4, 4}, {2, 3, 2, 1, 3, 5}}), 4, 7),
          over_all(spec_of(1, 1, {{900, 3, 2, 1, 1, 1}}), 80, 90),
          over_all(spec_of(3, 1, {{50, 9, 1, 2, 8, 8}}), 7, 20),
          over_all(spec_of(1, 1, {{1, 1}, {1, 1}}), 1, 1)};
}

/// Groups that are parts of a register, whole ones, and none.
std::vector<ConvSpec> specs_of_groups() {
  const auto grouped = [](ConvSpec spec, int64_t groups, int64_t in, int64_t out) {
    spec = over_all(spec, groups * in, groups * out);
    spec.groups = groups;
    return spec;
  };
  const ConvSpec usual = spec_of(2, 1, {{23, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}});
  return {grouped(usual, 9, 2, 2),
          grouped(usual, 10, 4, 4),
          grouped(usual, 5, 8, 8),
          grouped(usual, 3, 16, 16),
          grouped(usual, 2, 12, 12),
          grouped(usual, 2, 3, 40),
          grouped(spec_of(1, 1, {{30, 5, 2, 1, 2, 2}, {17, 3, 2, 2, 1, 1}}), 4, 4, 4),
          grouped(spec_of(3, 1, {{6, 1}, {5, 1}}), 4, 8, 8)};
}

/// By another engine: planes, or the tile kernel.
std::vector<float> by_other(ConvSpec spec, const Values& values) {
  spec.activation = &engines::add_one;
  if (spec.groups != spec.in_channels || spec.groups == 1)
    return values.by(*engines::prepare_conv(spec, engines::Engine::tile));
  const bool forward = spec.kind == ConvKind::forward;
  const int64_t from = count_of(forward ? spec.in : spec.out), to = count_of(forward ? spec.out : spec.in);
  const auto logical = [&](const std::vector<float>& x, int64_t points) { return turned(x, spec.in_channels, points); };
  spec.logical = true;
  Values given = values;
  given.first = logical(values.first, from);
  given.residual = logical(values.residual, to);
  return turned(given.by(*engines::prepare_conv(spec)), to, spec.in_channels);
}

std::vector<float> by_rows(ConvSpec spec, const Values& values, int64_t block, int threads) {
  spec.activation = &engines::add_one;
  const auto call = prepare_row_conv(spec, block);
  if (!call) return {};
  EXPECT_STREQ(call->engine(), "rows");
  return values.by(*call, threads);
}

class RowConvolutions : public OfRegisters {};
INSTANTIATE_TEST_SUITE_P(Registers, RowConvolutions, ::testing::Values(8, 16), lanes_name);

/// With all epilogues, flipped or not.
void expect_bits_of_other(ConvSpec spec, int64_t block) {
  for (const bool flipped : {false, true}) {
    spec.flipped = flipped;
    const Values values(spec);
    for (const Epilogue& epilogue : epilogues) {
      spec.epilogue = epilogue;
      const int threads = flipped ? 3 : 1;
      EXPECT_TRUE(same_bits(by_rows(spec, values, block, threads), by_other(spec, values)))
          << "width " << spec.in[0] << ", channels " << spec.in_channels << " and " << spec.out_channels << ", kind "
          << static_cast<int>(spec.kind) << ", flipped " << flipped << ", epilogue " << (&epilogue - epilogues);
    }
  }
}

TEST_P(RowConvolutions, OfSingleChannelsHaveTheBitsOfPlanes) {
  for (ConvSpec spec : specs()) {
    for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data}) {
      spec.kind = kind;
      expect_bits_of_other(spec, GetParam());
    }
  }
}

TEST_P(RowConvolutions, OverAllChannelsHaveTheBitsOfTheTileKernel) {
  for (const ConvSpec& spec : specs_over_all()) expect_bits_of_other(spec, GetParam());
}

void expect_near_other(const ConvSpec& spec, int64_t block) {
  const Values values(spec);
  const auto got = by_rows(spec, values, block, 2), wanted = by_other(spec, values);
  ASSERT_EQ(got.size(), wanted.size());
  float largest = 1;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], 2e-6 * largest)
        << "element " << i << ", width " << spec.in[0] << ", channels " << spec.in_channels << " and "
        << spec.out_channels << " in " << spec.groups << ", kind " << static_cast<int>(spec.kind) << ", flipped "
        << spec.flipped;
  }
}

/// Sums have another order there.
TEST_P(RowConvolutions, OfGroupsAndAsGradientsAgreeWithTheTileKernel) {
  std::vector<ConvSpec> all = specs_of_groups();
  for (const ConvSpec& spec : specs_over_all()) all.push_back(spec);
  for (ConvSpec spec : all) {
    for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data}) {
      spec.kind = kind;
      for (const bool flipped : {false, true}) {
        spec.flipped = flipped;
        spec.epilogue = {.bias = flipped, .residual = !flipped};
        expect_near_other(spec, GetParam());
      }
    }
  }
}

/// The same sums, rounded once; in registers of sixteen alone, and by lanes that have filters of their own.
TEST_P(RowConvolutions, OfHalvesAreThoseOfFloat32Rounded) {
  std::vector<ConvSpec> all = specs();
  for (const ConvSpec& spec : specs_of_groups()) {
    if (spec.in_channels == spec.out_channels && spec.in_channels / spec.groups < 12) all.push_back(spec);
  }
  for (ConvSpec spec : all) {
    for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data}) {
      spec.kind = kind;
      spec.flipped = kind == ConvKind::forward;
      for (const DType type : {DType::Float16, DType::BFloat16}) {
        Values values(spec);
        const auto halves = [type](std::vector<float>& wide) {
          std::vector<uint16_t> narrow(wide.size());
          engines::narrow(type, wide.data(), narrow.data(), static_cast<int64_t>(wide.size()));
          engines::widen(type, narrow.data(), wide.data(), static_cast<int64_t>(wide.size()));
          return narrow;
        };
        const auto first = halves(values.first), weights = halves(values.weights);
        std::vector<float> wanted = by_rows(spec, values, GetParam(), 1);
        ConvSpec narrow = spec;
        narrow.type = type;
        const auto call = prepare_row_conv(narrow, GetParam());
        ASSERT_EQ(call != nullptr, GetParam() == 16);
        if (!call) continue;
        std::vector<uint16_t> got(wanted.size(), 7);
        execute(*call, {first.data(), weights.data(), nullptr, got.data(), nullptr}, 2);
        EXPECT_EQ(got, halves(wanted)) << "width " << spec.in[0] << ", channels " << spec.in_channels << " in "
                                       << spec.groups << ", kind " << static_cast<int>(kind) << to_string(type);
      }
    }
  }
}

/// Weights that are not finite meet no padding, images none but their own windows; a NaN is not rectified away. (Such
/// filters are computed over planes without fused products.)
TEST_P(RowConvolutions, WhatIsNotFiniteStaysWhereItBelongs) {
  const ConvSpec filters = spec_of(2, 19, {{15, 3, 1, 1, 1, 1}, {14, 3, 2, 1, 1, 1}});
  ConvSpec by_data = filters;
  by_data.kind = ConvKind::backward_data;
  for (ConvSpec spec : {filters, by_data, over_all(filters, 19, 40)}) {
    spec.epilogue = {.bias = true, .activation = plan::Activation::relu6};
    Values values(spec);
    values.weights[0] = std::numeric_limits<float>::infinity();
    values.first[static_cast<size_t>(40 * spec.in_channels + 18)] = std::numeric_limits<float>::quiet_NaN();
    const auto got = by_rows(spec, values, GetParam(), 1), wanted = by_other(spec, values);
    ASSERT_EQ(got.size(), wanted.size());
    int64_t nans = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      nans += std::isnan(got[i]);
      EXPECT_TRUE(std::abs(got[i] - wanted[i]) < 1e-5 || (std::isnan(got[i]) && std::isnan(wanted[i])))
          << i << ": " << got[i] << " instead of " << wanted[i];
    }
    EXPECT_GT(nans, 0);
    EXPECT_LT(nans, static_cast<int64_t>(got.size()) / 4);
  }
}

TEST_P(RowConvolutions, PackedWeightsAreAForm) {
  const ConvSpec filters = spec_of(1, 21, {{12, 3, 1, 1, 1, 1}, {12, 3, 1, 1, 1, 1}});
  for (ConvSpec spec : {filters, over_all(filters, 150, 90)}) {
    spec.flipped = true;
    const Values values(spec);
    const auto call = prepare_row_conv(spec, GetParam());
    ASSERT_TRUE(call);
    EXPECT_EQ(call->form(0).bytes, 0u);
    engines::Block form(call->form(1).bytes);
    call->make_form(1, values.weights.data(), form.data());
    std::vector<float> result(values.residual.size());
    execute(*call, {values.first.data(), nullptr, nullptr, result.data(), nullptr, nullptr, {nullptr, form.data()}});
    EXPECT_TRUE(same_bits(result, by_other(spec, values)));
  }
}

TEST_P(RowConvolutions, OneImageIsWorthSeveralChunks) {
  const ConvSpec spec = spec_of(1, 32, {{112, 3, 1, 1, 1, 1}, {112, 3, 1, 1, 1, 1}});
  EXPECT_GT(prepare_row_conv(spec, GetParam())->chunks(), 1);
}

TEST_P(RowConvolutions, OtherConvolutionsAreLeftToOthers) {
  ConvSpec spec = spec_of(1, 16, {{9, 3}, {9, 3}});
  spec.type = DType::Float64;
  EXPECT_EQ(prepare_row_conv(spec, GetParam()), nullptr);
  spec.type = DType::Float32;
  spec.kind = ConvKind::backward_weights;  // of groups
  EXPECT_EQ(prepare_row_conv(spec, GetParam()), nullptr);
  EXPECT_EQ(prepare_row_conv(spec_of(1, 16, {{9, 3}, {9, 3}, {4, 2}}), GetParam()), nullptr);
}

/// Images that stand in logical order are turned for large filters of single channels, there and back, not for others.
TEST(RowConvolutionsInPlans, LargeFiltersTakeImagesWithChannelsFirst) {
  if (!machine_code_works()) GTEST_SKIP() << "this processor has no AVX2, or ROSIN_JIT is 0";
  Rng rng(3);
  const Array x = randn(rng, {20, 19, 6, 2}), small = randn(rng, {3, 3, 1, 6}), large = randn(rng, {5, 5, 1, 6});
  const auto kernels_of = [&](const Array& w, int64_t pad) {
    const Stats before = stats();
    eval(conv(x, w, {.pad = pad, .groups = 6}));
    return stats().kernels - before.kernels;
  };
  eval(x), eval(small), eval(large);
  EXPECT_EQ(kernels_of(small, 1), 0);
  EXPECT_EQ(kernels_of(large, 2), 2);
}

}  // namespace
}  // namespace rosin::cpu
