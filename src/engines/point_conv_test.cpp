// Convolutions of single points of images in logical order: against the definition, written here in Float64, with every
// epilogue, and for any number of threads.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <rosin/error.hpp>

#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

ConvSpec spec_of(int64_t batch, int64_t in, int64_t out, const std::vector<int64_t>& sizes) {
  ConvSpec spec;
  spec.spatial = static_cast<int>(sizes.size());
  spec.batch = batch;
  spec.in_channels = in;
  spec.out_channels = out;
  for (size_t d = 0; d < sizes.size(); ++d) spec.in[d] = spec.out[d] = sizes[d];
  spec.logical = true;
  return spec;
}

/// Small and large, one image and several groups of them.
std::vector<ConvSpec> specs() {
  return {spec_of(1, 3, 5, {7, 4}),     spec_of(5, 64, 17, {33, 2}), spec_of(40, 8, 70, {16, 16}),
          spec_of(3, 130, 2, {41}),     spec_of(2, 6, 4, {3, 5, 2}), spec_of(1, 1, 9, {50, 3}),
          spec_of(70, 300, 65, {13, 7})};
}

std::vector<int64_t> counts(const ConvSpec& s) {
  const int64_t pixels = count_of(s.in);
  return {pixels * s.in_channels * s.batch, s.in_channels * s.out_channels, pixels * s.out_channels * s.batch};
}

std::vector<double> defined(const ConvSpec& s, const std::vector<double>& first, const std::vector<double>& second) {
  const int64_t pixels = count_of(s.in);
  const size_t* role = conv_roles[static_cast<int>(s.kind)];
  std::vector<double> result(static_cast<size_t>(counts(s)[role[2]]));
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t out = 0; out < s.out_channels; ++out) {
      for (int64_t in = 0; in < s.in_channels; ++in) {
        for (int64_t i = 0; i < pixels; ++i) {
          const int64_t at[] = {(n * s.in_channels + in) * pixels + i, out * s.in_channels + in,
                                (n * s.out_channels + out) * pixels + i};
          result[static_cast<size_t>(at[role[2]])] +=
              first[static_cast<size_t>(at[role[0]])] * second[static_cast<size_t>(at[role[1]])];
        }
      }
    }
  }
  return result;
}

TEST(PointConv, AllKindsAgreeWithTheDefinition) {
  for (ConvSpec spec : specs()) {
    spec.type = DType::Float32;
    check_conv_kinds<float>(spec, 1e-5, counts, defined);
    spec.type = DType::Float64;
    check_conv_kinds<double>(spec, 1e-13, counts, defined);
  }
}

TEST(PointConv, EpiloguesHaveTheBitsOfSeparateSteps) {
  for (ConvSpec spec : specs()) {
    const int64_t pixels = count_of(spec.in);
    const auto x = converted<float>(random_values(counts(spec)[0])),
               w = converted<float>(random_values(counts(spec)[1]));
    const auto bias = converted<float>(random_values(spec.out_channels));
    const auto residual = converted<float>(random_values(counts(spec)[2]));
    std::vector<float> plain(residual.size()), got(residual.size());
    execute(*prepare_conv(spec), {x.data(), w.data(), nullptr, plain.data(), nullptr});
    for (const Activation activation : {Activation::none, Activation::relu, Activation::tanh}) {
      spec.epilogue.bias = true;
      spec.epilogue.residual = activation != Activation::relu;
      spec.epilogue.activation = activation;
      spec.activation = &add_one;
      std::vector<float> wanted = plain;
      for (size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] += bias[i / static_cast<size_t>(pixels) % bias.size()];
        if (spec.epilogue.residual) wanted[i] += residual[i];
        if (activation == Activation::relu && wanted[i] < 0) wanted[i] = 0;
        if (activation == Activation::tanh) wanted[i] += 1;
      }
      execute(*prepare_conv(spec), {x.data(), w.data(), bias.data(), got.data(), nullptr, residual.data()}, 2, true);
      EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0) << spec.in_channels;
    }
  }
}

TEST(PointConv, ResultsAreBitEqualForAnyNumberOfThreads) {
  ConvSpec spec = spec_of(40, 8, 70, {16, 16});
  for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
    spec.kind = kind;
    const size_t* role = conv_roles[static_cast<int>(kind)];
    const auto a = converted<float>(random_values(counts(spec)[role[0]]));
    const auto b = converted<float>(random_values(counts(spec)[role[1]]));
    const auto call = prepare_conv(spec);
    EXPECT_GT(call->chunks(), 1);
    std::vector<float> one(static_cast<size_t>(counts(spec)[role[2]])), three(one.size());
    execute(*call, {a.data(), b.data(), nullptr, one.data(), nullptr});
    execute(*call, {a.data(), b.data(), nullptr, three.data(), nullptr}, 3, true);
    EXPECT_EQ(std::memcmp(one.data(), three.data(), one.size() * sizeof(float)), 0);
  }
}

/// Of images in CWHN, by many weights and by few.
TEST(PointConv, GradientsByWeightsAreProductsWithChannelsFirst) {
  for (const auto& [in, out] : {std::pair{64, 100}, {40, 200}, {32, 16}}) {
    ConvSpec spec = spec_of(3, in, out, {9, 7});
    spec.logical = false;
    spec.kind = ConvKind::backward_weights;
    const int64_t pixels = 3 * count_of(spec.in);
    const auto x = random_values(counts(spec)[0]), dy = random_values(counts(spec)[2]);
    std::vector<double> wanted(static_cast<size_t>(counts(spec)[1]));
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t i = 0; i < in * out; ++i) {
        wanted[static_cast<size_t>(i)] +=
            x[static_cast<size_t>(p * in + i % in)] * dy[static_cast<size_t>(p * out + i / in)];
      }
    }
    std::vector<float> got(wanted.size(), 7.0f);
    const auto first = converted<float>(x), second = converted<float>(dy);
    execute(*prepare_conv(spec), {first.data(), second.data(), nullptr, got.data(), nullptr}, 2);
    expect_close(got, wanted, 1e-5, std::to_string(in) + " to " + std::to_string(out));
  }
}

TEST(PointConv, WindowsThatAreMoreAreRefused) {
  const auto refused = [](auto&& change) {
    ConvSpec spec = spec_of(1, 4, 4, {9, 9});
    change(spec);
    spec.out[0] = (spec.in[0] + spec.pad_low[0] - spec.kernel[0]) / spec.stride[0] + 1;
    EXPECT_THROW(prepare_conv(spec), Error);
  };
  refused([](ConvSpec& spec) { spec.kernel[0] = 3; });
  refused([](ConvSpec& spec) { spec.stride[0] = 2; });
  refused([](ConvSpec& spec) { spec.pad_low[0] = 1; });
  refused([](ConvSpec& spec) { spec.groups = 2; });
  refused([](ConvSpec& spec) { spec.type = DType::BFloat16; });
}

}  // namespace
}  // namespace rosin::engines
