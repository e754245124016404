// Normalising layers against NumPy (tests/oracles/norm.txt) and the values of Flux's tests.
#include <rosin/normalise_layers.hpp>

#include <gtest/gtest.h>

#include <rosin/compose.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;
using oracles::OracleCase;
using Inputs = std::vector<Array>;

bool near(const Array& a, const Array& b) { return maximum(abs(a - b)).item() < 1e-5; }

Inputs batchnorm(const OracleCase& entry, const Inputs& in) {
  BatchNorm layer(in[0].size(-2), {.eps = entry.number("eps", 1e-5), .momentum = entry.number("momentum", 0.1)});
  layer.scale = in[1];
  layer.bias = in[2];
  layer.mean = in[3];
  layer.variance = in[4];
  const bool training = entry.number("training", 0) != 0;
  layer.mode = training ? LayerMode::train : LayerMode::test;
  if (!training || in_gradient()) return {layer(in[0])};
  Array y;
  gradient([&](const BatchNorm& l) { return sum(y = l(in[0])); }, layer);
  Inputs outputs = {y, layer.mean.value(), layer.variance.value()};
  outputs.resize(entry.outputs.size());
  return outputs;
}

TEST(NormaliseLayers, AgreeWithNumPy) {
  oracles::run_oracles("norm.txt", {{"batchnorm", batchnorm},
                                    {"layernorm",
                                     [](const OracleCase& entry, const Inputs& in) {
                                       LayerNorm layer(in[1].shape(), {}, {.eps = entry.number("eps", 1e-5)});
                                       layer.scale = in[1];
                                       layer.bias = in[2];
                                       return Inputs{layer(in[0])};
                                     }},
                                    {"groupnorm", [](const OracleCase& entry, const Inputs& in) {
                                       GroupNorm layer(in[0].size(-2), entry.integers("groups")[0],
                                                       {.eps = entry.number("eps", 1e-5)});
                                       layer.scale = in[1];
                                       layer.bias = in[2];
                                       return Inputs{layer(in[0])};
                                     }}});
}

TEST(BatchNorm, TracksStatisticsInsideGradientCallsOnly) {
  BatchNorm layer(2);
  const Array x({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  Array y;
  gradient([&](const BatchNorm& l) { return sum(y = l(x)); }, layer);
  expect_near(y, {-1.22474, -1.22474, 0, 0, 1.22474, 1.22474}, 1e-4);
  expect_near(layer.mean, {0.3, 0.4}, 1e-6);
  expect_near(layer.variance, {1.3, 1.3}, 1e-6);
  EXPECT_NEAR(layer(x).item(0, 0), (1 - 0.3) / std::sqrt(1.3), 1e-4);
  expect_near(layer.mean, {0.3, 0.4}, 1e-6);
  const BatchNorm fixed(2);
  gradient([&](const BatchNorm& l) { return sum(l(x)); }, fixed);
  expect_near(fixed.mean, {0, 0}, 0);
}

/// Variances of channels, from values (channels, batch) by the definition in double.
std::vector<double> variances_of(const std::vector<float>& values, size_t channels) {
  std::vector<double> found(channels);
  const size_t batch = values.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0;
    for (size_t n = 0; n < batch; ++n) mean += values[n * channels + c] / static_cast<double>(batch);
    for (size_t n = 0; n < batch; ++n) found[c] += std::pow(values[n * channels + c] - mean, 2);
    found[c] /= static_cast<double>(batch);
  }
  return found;
}

// Channels: far from 0; all equal; an outlier in the middle, where distances are counted from; tiny.
TEST(BatchNorm, VariancesLoseNoDigitsToTheMean) {
  constexpr int64_t batch = 4096, channels = 4;
  seed(1);
  std::vector<float> values;
  for (const float noise : randn({batch}).to_vector<float>()) {
    const float outlier = values.size() == channels * batch / 2 ? 1000.0f : noise;
    values.insert(values.end(), {20000 + noise, 0.1f, outlier, 1e-10f * noise});
  }
  BatchNorm layer(channels, {.momentum = 1.0});
  gradient([&](const BatchNorm& l) { return sum(l(Array(values, {channels, batch}))); }, layer);
  const std::vector<double> expected = variances_of(values, channels);
  const auto found = layer.variance.value().to_vector<float>();
  const double bounds[] = {1e-5, 0, 1e-2, 1e-5};
  for (size_t c = 0; c < channels; ++c) {
    const double corrected = expected[c] * batch / (batch - 1);
    EXPECT_NEAR(found[c], c == 1 ? 0 : corrected, bounds[c] * corrected) << c;
  }
}

TEST(BatchNorm, RefusesOneValuePerChannelInTraining) {
  BatchNorm layer(1);
  EXPECT_EQ(
      error_of([&] {
        gradient([](const BatchNorm& l) { return sum(l(ones({1, 1}))); }, layer);
      }),
      "BatchNorm: expected more than 1 value per channel when training; got input of size (1, 1); use larger batches, "
      "or testmode(model)");
  testmode(layer);
  EXPECT_EQ(gradient([](const Array& x) { return sum(x); }, ones({1, 1})).item(), 1);
  expect_near(layer(zeros({1, 1})), {0}, 0);
  EXPECT_EQ(
      error_of([&] {
        layer(ones({3, 2}));
      }),
      "layer BatchNorm(1, active=false) expects size(input, 0) == 1 of at least 2 dims, but got 3×2 Array{Float32}; "
      "arrays are (..., channels, batch)");
}

/// In a gradient call, in training mode; the layer comes back with its statistics.
template <class L> void expect_nothing_of_nothing(L layer, const Array& x, const std::string& name) {
  auto [by_layer, by_x] = gradient([](const L& l, const Array& in) { return sum(l(in)); }, layer, x);
  EXPECT_EQ(layer(x).shape(), x.shape()) << name;
  EXPECT_EQ(by_x.shape(), x.shape()) << name;
  expect_near(by_layer.scale, std::vector<double>(static_cast<size_t>(layer.scale.count())), 0);
  expect_near(by_layer.bias, std::vector<double>(static_cast<size_t>(layer.scale.count())), 0);
  if constexpr (requires { layer.mean; }) {
    expect_near(layer.mean, {0, 0}, 0);
    expect_near(layer.variance, {1, 1}, 0);
  }
  testmode(layer);
  EXPECT_EQ(layer(x).shape(), x.shape()) << name;
}

TEST(NormaliseLayers, TakeEmptyBatches) {
  for (const Shape& shape : {Shape{4, 4, 2, 0}, Shape{0, 3, 2, 5}}) {
    const Array x = zeros(shape);
    expect_nothing_of_nothing(BatchNorm(2), x, "BatchNorm");
    expect_nothing_of_nothing(GroupNorm(2, 1), x, "GroupNorm");
    expect_nothing_of_nothing(InstanceNorm(2, {.affine = true, .track_stats = true}), x, "InstanceNorm");
  }
  expect_nothing_of_nothing(BatchNorm(2), zeros({2, 0}), "BatchNorm");
  expect_nothing_of_nothing(LayerNorm(3), zeros({3, 0}), "LayerNorm");
  expect_nothing_of_nothing(LayerNorm({3, 2}), zeros({3, 2, 0}), "LayerNorm");
}

/// What PyTorch's autocast and Flux do: halves pass through, statistics and what is computed from them are Float32.
TEST(NormaliseLayers, HalvesAreComputedWithStatisticsInFloat32) {
  const Array x = randn({6, 2, 5});
  for (DType type : {Float16, BFloat16}) {
    const Array half = cast(x, type), wide = cast(half, Float32);
    const auto expect_rounded_once = [&]<class L>(L layer) {
      L small = with_floats(layer, type);
      Array y, z;
      gradient([&](const L& l) { return sum(cast(y = l(half), Float32)); }, small);
      gradient([&](const L& l) { return sum(z = l(wide)); }, layer);
      EXPECT_EQ(y.dtype(), type);
      EXPECT_EQ(small.mean.value().dtype(), Float32);
      EXPECT_EQ(small.mean.value().to_vector(), layer.mean.value().to_vector());
      EXPECT_EQ(small.variance.value().to_vector(), layer.variance.value().to_vector());
      EXPECT_EQ(y.to_vector(), cast(z, type).to_vector());
      EXPECT_EQ(small(half).to_vector(), cast(layer(wide), type).to_vector());
    };
    expect_rounded_once(BatchNorm(2));
    expect_rounded_once(BatchNorm(2, {.affine = false}));
    expect_rounded_once(InstanceNorm(2, {.affine = true, .track_stats = true}));
  }
}

TEST(InstanceNorm, RefusesOneValuePerChannelWhereItTracks) {
  InstanceNorm layer(1, {.track_stats = true});
  const std::string text = error_of([&] {
    gradient([](const InstanceNorm& l) { return sum(l(ones({1, 1, 3}))); }, layer);
  });
  EXPECT_NE(
      text.find("InstanceNorm: expected more than 1 value per channel when training; got input of size (1, 1, 3)"),
      std::string::npos)
      << text;
}

TEST(InstanceNorm, TracksMeansOverTheBatch) {
  InstanceNorm layer(2, {.affine = true, .track_stats = true});
  const Array x = reshape(arange(1.0, 13.0, 1.0), {3, 2, 2});
  gradient([&](const InstanceNorm& l) { return sum(l(x)); }, layer);
  expect_near(layer.mean, {0.5, 0.8}, 1e-6);
  expect_near(layer.variance, {1, 1}, 1e-6);
}

TEST(InstanceNorm, IsBatchNormOfEachSample) {
  const Array x = randn({5, 5, 3, 4, 2, 6});
  BatchNorm squashed(12, {.track_stats = false});
  const Array want = squashed(reshape(x, {5, 5, 3, 4, 12, 1}));
  EXPECT_TRUE(near(InstanceNorm(2)(x), reshape(want, x.shape())));
}

TEST(GroupNorm, HasInstanceNormAndBatchNormAsSpecialCases) {
  const Array x = reshape(arange(1.0, 25.0, 1.0), {3, 4, 2});
  const Array y = GroupNorm(4, 2)(x);
  expect_near(slice(reshape(y, {24}), 0, 0, 3), {-1.4638476, -0.87830865, -0.29276967}, 1e-5);
  EXPECT_TRUE(near(GroupNorm(4, 4)(x), InstanceNorm(4)(x)));
  const Array one = randn({3, 4, 1});
  EXPECT_TRUE(near(GroupNorm(4, 4)(one), BatchNorm(4, {.track_stats = false})(one)));
  EXPECT_EQ(
      error_of([] { GroupNorm(4, 3); }),
      "GroupNorm: the number of groups (3) must divide the number of channels (4); got a remainder; use another number "
      "of groups");
}

/// From as many pixels on the statistics follow from those of channels; a group of a sample as a row has them from all.
TEST(GroupNorm, OfLargeImagesNormalisesEachGroupOfASampleAsARow) {
  for (const int64_t side : {5, 6, 9}) {
    Rng rng(4);
    const Array x = cast(normal(rng, {side, side, 6, 2}, 3, 1), Float64);
    const Array slopes = cast(normal(rng, x.shape(), 0, 1), Float64);
    GroupNorm layer(6, 3, {.affine = false});
    const auto by_groups = [&](const Array& a) { return layer(a); };
    const auto by_rows = [&](const Array& a) {
      return reshape(normalise(reshape(a, {side * side * 2, 6}), 0), a.shape());
    };
    const auto loss = [&](const auto& f) { return [&](const Array& a) { return sum(square(f(a) + 1) * slopes); }; };
    EXPECT_TRUE(allclose(layer(x), by_rows(x), {.rtol = 1e-12, .atol = 1e-12})) << side;
    EXPECT_TRUE(allclose(gradient(loss(by_groups), x), gradient(loss(by_rows), x), {.rtol = 1e-9, .atol = 1e-9}))
        << side;
  }
}

TEST(LayerNorm, NormalisesTheFirstDims) {
  const Array x = randn({2, 3, 4, 5});
  EXPECT_TRUE(near(LayerNorm(2)(x), normalise(x, 0)));
  EXPECT_TRUE(near(LayerNorm({2, 3, 4})(x), normalise(x, {0, 1, 2})));
  EXPECT_TRUE(near(LayerNorm({2, 3}, {.eps = 0.5})(x), normalise(x, {0, 1}, 0.5)));
  EXPECT_TRUE(LayerNorm(Shape{2, 3}, {.affine = false}).scale.is_nothing());
  EXPECT_EQ(
      error_of([&] { LayerNorm(3)(x); }),
      "layer LayerNorm(3) expects first sizes (3), but got 2×3×4×5 Array{Float32}; arrays are (features..., batch)");
}

}  // namespace
}  // namespace rosin
