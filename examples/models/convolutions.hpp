// What the networks of images share: PyTorch's convolutions, and its adaptive pooling.
#pragma once

#include <rosin/rosin.hpp>

#include <algorithm>
#include <vector>

namespace models {

/// torch.nn.Conv2d without bias.
inline rosin::CrossCor plain_conv(int64_t size, int64_t in, int64_t out, int64_t stride = 1, int64_t pad = 0,
                                  int64_t groups = 1) {
  return rosin::CrossCor(
      {size, size}, in, out,
      {.stride = stride, .pad = pad, .groups = groups, .bias = false, .init = rosin::kaiming_normal});
}

/// (in, out): column i has the mean of the elements floor(i * in / out) to ceil((i + 1) * in / out).
inline rosin::Array averages(int64_t in, int64_t out) {
  std::vector<float> weights(static_cast<size_t>(in * out));
  for (int64_t i = 0; i < out; ++i) {
    const int64_t first = i * in / out, last = ((i + 1) * in + out - 1) / out;
    const auto start = weights.begin() + i * in;
    std::fill(start + first, start + last, 1.0f / static_cast<float>(last - first));
  }
  return rosin::Array(weights, {in, out});
}

/// torch.nn.AdaptiveAvgPool2d: x is (width, height, channels, batch) -> (size, size, channels, batch), of any width and
/// height, smaller ones too. (rosin's adaptive_meanpool has windows of one size, as Flux has.)
inline rosin::Array average_to(const rosin::Array& x, int64_t size) {
  if (x.size(0) == size && x.size(1) == size) return x;
  const auto like_x = [&](const rosin::Array& weights) { return rosin::cast(weights, x.dtype()) | x.device(); };
  const rosin::Array across = rosin::transpose(like_x(averages(x.size(0), size)));
  return rosin::matmul(rosin::matmul(across, x), like_x(averages(x.size(1), size)));
}

}  // namespace models
