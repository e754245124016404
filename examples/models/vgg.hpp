// VGG-11, 13, 16 and 19 with the names and layouts of torchvision, with or without BatchNorm.
// Source: Simonyan, Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition (2014).
#pragma once

#include <rosin/rosin.hpp>

#include <vector>

#include "convolutions.hpp"

namespace models {

/// Convolutions of 3x3 with pooling between them, then three products.
struct VGG {
  rosin::Chain features;
  rosin::Chain classifier;

  /// Images (width, height, 3, batch), at least 32 wide and high -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    return classifier(rosin::flatten(average_to(features(x), 7)));
  }
};

struct VGGOptions {
  bool batch_norm = false;
  int64_t classes = 1000;
  int64_t hidden = 4096;  // width of the classifier
  double dropout = 0.5;
};

/// Channels of the convolutions in torchvision's order; 0 stands for pooling.
inline const std::vector<int64_t> vgg11_layers = {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
inline const std::vector<int64_t> vgg13_layers = {64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0};
inline const std::vector<int64_t> vgg16_layers = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                                  0,  512, 512, 512, 0,   512, 512, 512, 0};
inline const std::vector<int64_t> vgg19_layers = {64,  64,  0,   128, 128, 0,   256, 256, 256, 256, 0,
                                                  512, 512, 512, 512, 0,   512, 512, 512, 512, 0};

inline VGG vgg(const std::vector<int64_t>& layers, const VGGOptions& options = {}) {
  std::vector<rosin::Layer> features;
  int64_t in = 3;
  for (int64_t channels : layers) {
    if (channels == 0) {
      features.push_back(rosin::MaxPool(2));
      continue;
    }
    features.push_back(rosin::CrossCor({3, 3}, in, channels, {.pad = 1, .init = rosin::kaiming_normal}));
    if (options.batch_norm) features.push_back(rosin::BatchNorm(channels));
    features.push_back(rosin::relu);
    in = channels;
  }
  const int64_t hidden = options.hidden;
  return {rosin::Chain(features),
          rosin::Chain(rosin::Dense(in * 7 * 7, hidden), rosin::relu, rosin::Dropout(options.dropout),
                       rosin::Dense(hidden, hidden), rosin::relu, rosin::Dropout(options.dropout),
                       rosin::Dense(hidden, options.classes))};
}

}  // namespace models
