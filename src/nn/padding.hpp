// Padding that keeps sizes (SamePad), for convolution and pooling layers.
#pragma once

#include <cstdint>
#include <span>

#include <rosin/pool.hpp>

namespace rosin {

/// Low and high padding for windows of these sizes: together one less than the window, the odd element low.
inline Extents same_padding(std::span<const int64_t> windows) {
  int64_t values[6] = {};
  size_t count = 0;
  for (int64_t window : windows) {
    values[count++] = window / 2;
    values[count++] = (window - 1) / 2;
  }
  return Extents(std::span<const int64_t>(values, count));
}

}  // namespace rosin
