// MobileNetV2 with the names and layouts of torchvision.
// Source: Sandler, Howard, Zhu, Zhmoginov, Chen: MobileNetV2: Inverted Residuals and Linear Bottlenecks (2018).
#pragma once

#include <rosin/rosin.hpp>

#include <algorithm>
#include <vector>

#include "convolutions.hpp"

namespace models {

/// Widens, filters each channel by itself, narrows; x is added where the shape stays.
struct InvertedResidual {
  rosin::Chain conv;
  bool use_res_connect = false;

  rosin::Array operator()(const rosin::Array& x) const { return use_res_connect ? x + conv(x) : conv(x); }
};

struct MobileNetV2 {
  rosin::Chain features;
  rosin::Chain classifier;

  /// Images (width, height, 3, batch) -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    return classifier(rosin::flatten(rosin::global_meanpool(features(x))));
  }
};

/// `repeats` blocks of `channels` channels, the first of which has `stride`; inside they are `expansion` times as wide.
struct MobileNetStage {
  int64_t expansion, channels, repeats, stride;
};

struct MobileNetV2Options {
  double width = 1;  // multiplies the channels
  int64_t classes = 1000;
  double dropout = 0.2;
  std::vector<MobileNetStage> stages = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
};

namespace detail {

/// Convolution, BatchNorm, relu6.
inline rosin::Chain conv_norm(int64_t size, int64_t in, int64_t out, int64_t stride = 1, int64_t groups = 1) {
  return rosin::Chain(plain_conv(size, in, out, stride, (size - 1) / 2, groups), rosin::BatchNorm(out), rosin::relu6);
}

inline InvertedResidual inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expansion) {
  const int64_t wide = in * expansion;
  std::vector<rosin::Layer> layers;
  if (expansion != 1) layers.push_back(conv_norm(1, in, wide));
  layers.push_back(conv_norm(3, wide, wide, stride, wide));
  layers.push_back(plain_conv(1, wide, out));
  layers.push_back(rosin::BatchNorm(out));
  return {rosin::Chain(layers), stride == 1 && in == out};
}

/// The nearest multiple of 8 that is not more than a tenth below.
inline int64_t round_channels(double channels) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

}  // namespace detail

inline MobileNetV2 mobilenet_v2(const MobileNetV2Options& options = {}) {
  int64_t in = detail::round_channels(32 * options.width);
  std::vector<rosin::Layer> features{detail::conv_norm(3, 3, in, 2)};
  for (const MobileNetStage& stage : options.stages) {
    const int64_t out = detail::round_channels(static_cast<double>(stage.channels) * options.width);
    for (int64_t i = 0; i < stage.repeats; ++i) {
      features.push_back(detail::inverted_residual(in, out, i ? 1 : stage.stride, stage.expansion));
      in = out;
    }
  }
  const int64_t last = detail::round_channels(1280 * std::max(1.0, options.width));
  features.push_back(detail::conv_norm(1, in, last));
  return {rosin::Chain(features), rosin::Chain(rosin::Dropout(options.dropout), rosin::Dense(last, options.classes))};
}

}  // namespace models
