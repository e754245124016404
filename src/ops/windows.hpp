// What convolution and pooling share: numbers per spatial dim, paddings, the rank of images.
#pragma once

#include <limits>

#include <rosin/pool.hpp>

#include "ops/shapes.hpp"

namespace rosin {

/// The number for spatial dim d: one number holds for all, none means `otherwise`. Error (argument) for other counts.
int64_t extent_for(std::string_view op, std::string_view what, const Extents& values, int d, int spatial,
                   int64_t otherwise);

struct Padding {
  int64_t low = 0, high = 0;
};
/// One number for all, one for each dim, or two (low, high) for each dim.
Padding padding_for(std::string_view op, const Extents& pad, int d, int spatial);

/// A number of a window as its attributes keep it; Error (argument) where it is too large for them.
template <class Narrow> Narrow narrowed(std::string_view op, std::string_view what, int64_t value) {
  constexpr int64_t most = std::numeric_limits<Narrow>::max();
  if (value <= most) return static_cast<Narrow>(value);
  refuse(ErrorKind::argument, op, std::string(what) + " can be at most " + std::to_string(most), std::to_string(value),
         "use a smaller number");
}

/// Spatial dims of images (spatial..., channels, batch); Error (shape) unless there are one to three.
int spatial_dims(std::string_view op, const Array& x);

/// relu_slope(g, y) where g is still what maxpool gives back to y: each window's largest element says it for all that
/// the window gives, and of windows there are fewer than elements. Nothing where g is anything else.
Array relu_slope_by_windows(const Array& g, const Array& y);
/// What adds up, over images, to the same as g, where g is what that gave back: what the windows have. Else nothing.
Array given_by_windows(const Array& g);

}  // namespace rosin
