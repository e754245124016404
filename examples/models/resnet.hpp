// ResNet-18 and ResNet-50 with the names and layouts of torchvision.
// Source: He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition (2015); strides as in torchvision (in the
// 3x3 convolution).
#pragma once

#include <rosin/rosin.hpp>

#include <array>
#include <vector>

#include "convolutions.hpp"

namespace models {

/// Two convolutions and what goes past them.
struct BasicBlock {
  rosin::CrossCor conv1;
  rosin::BatchNorm bn1;
  rosin::CrossCor conv2;
  rosin::BatchNorm bn2;
  rosin::Chain downsample;  // empty where the shape stays

  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array inner = rosin::relu(bn1(conv1(x)));
    return rosin::relu(bn2(conv2(inner)) + downsample(x));
  }
};

/// Three convolutions, of which the outer ones change the number of channels.
struct Bottleneck {
  rosin::CrossCor conv1;
  rosin::BatchNorm bn1;
  rosin::CrossCor conv2;
  rosin::BatchNorm bn2;
  rosin::CrossCor conv3;
  rosin::BatchNorm bn3;
  rosin::Chain downsample;

  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array narrow = rosin::relu(bn1(conv1(x)));
    const rosin::Array inner = rosin::relu(bn2(conv2(narrow)));
    return rosin::relu(bn3(conv3(inner)) + downsample(x));
  }
};

/// Four stages of blocks between a first convolution and a classifier.
struct ResNet {
  rosin::CrossCor conv1;
  rosin::BatchNorm bn1;
  rosin::Chain layer1, layer2, layer3, layer4;
  rosin::Dense fc;

  /// Images (width, height, 3, batch) -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array first = rosin::maxpool(rosin::relu(bn1(conv1(x))), 3, 2, 1);
    return fc(rosin::flatten(rosin::global_meanpool(layer4(layer3(layer2(layer1(first)))))));
  }
};

namespace detail {

inline rosin::Chain downsample(int64_t in, int64_t out, int64_t stride) {
  if (in == out && stride == 1) return {};
  return rosin::Chain(plain_conv(1, in, out, stride), rosin::BatchNorm(out));
}

inline BasicBlock basic_block(int64_t in, int64_t width, int64_t stride) {
  return {plain_conv(3, in, width, stride, 1), rosin::BatchNorm(width), plain_conv(3, width, width, 1, 1),
          rosin::BatchNorm(width), downsample(in, width, stride)};
}

inline Bottleneck bottleneck(int64_t in, int64_t width, int64_t stride) {
  const int64_t out = 4 * width;
  return {plain_conv(1, in, width),   rosin::BatchNorm(width),   plain_conv(3, width, width, stride, 1),
          rosin::BatchNorm(width),    plain_conv(1, width, out), rosin::BatchNorm(out),
          downsample(in, out, stride)};
}

/// `make(in, width, stride)` gives a block with `expansion * width` channels.
template <class Block>
rosin::Chain stage(Block (*make)(int64_t, int64_t, int64_t), int64_t blocks, int64_t in, int64_t width,
                   int64_t expansion, int64_t stride) {
  std::vector<rosin::Layer> layers;
  for (int64_t i = 0; i < blocks; ++i) layers.push_back(make(i ? expansion * width : in, width, i ? 1 : stride));
  return rosin::Chain(layers);
}

template <class Block>
ResNet resnet(Block (*make)(int64_t, int64_t, int64_t), int64_t expansion, const std::array<int64_t, 4>& blocks,
              int64_t classes) {
  return {plain_conv(7, 3, 64, 2, 3),
          rosin::BatchNorm(64),
          stage(make, blocks[0], 64, 64, expansion, 1),
          stage(make, blocks[1], 64 * expansion, 128, expansion, 2),
          stage(make, blocks[2], 128 * expansion, 256, expansion, 2),
          stage(make, blocks[3], 256 * expansion, 512, expansion, 2),
          rosin::Dense(512 * expansion, classes)};
}

}  // namespace detail

/// torchvision.models.resnet18; `blocks` of each stage.
inline ResNet resnet18(int64_t classes = 1000, const std::array<int64_t, 4>& blocks = {2, 2, 2, 2}) {
  return detail::resnet(detail::basic_block, 1, blocks, classes);
}
/// torchvision.models.resnet50.
inline ResNet resnet50(int64_t classes = 1000, const std::array<int64_t, 4>& blocks = {3, 4, 6, 3}) {
  return detail::resnet(detail::bottleneck, 4, blocks, classes);
}

}  // namespace models
