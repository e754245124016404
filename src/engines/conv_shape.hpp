// A convolution's or pooling's sizes with all three spatial dims filled in. Read after vendor.hpp.
#pragma once

#include <cstdint>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// One number per spatial dim, fastest first.
struct Extent {
  int64_t w = 1, h = 1, d = 1;
  int64_t count() const { return w * h * d; }
};

/// The first `spatial` entries of `values`, then `rest`.
inline Extent extent_of(const int64_t* values, int spatial, int64_t rest) {
  return {values[0], spatial > 1 ? values[1] : rest, spatial > 2 ? values[2] : rest};
}

struct ConvShape {
  explicit ConvShape(const ConvSpec& spec)
      : batch(spec.batch), groups(spec.groups), in_channels(spec.in_channels / spec.groups),
        out_channels(spec.out_channels / spec.groups), in(extent_of(spec.in, spec.spatial, 1)),
        out(extent_of(spec.out, spec.spatial, 1)), kernel(extent_of(spec.kernel, spec.spatial, 1)),
        stride(extent_of(spec.stride, spec.spatial, 1)), dilation(extent_of(spec.dilation, spec.spatial, 1)),
        pad_low(extent_of(spec.pad_low, spec.spatial, 0)), pad_high(extent_of(spec.pad_high, spec.spatial, 0)) {}

  int64_t batch, groups;
  int64_t in_channels, out_channels;  // per group
  Extent in, out, kernel, stride, dilation, pad_low, pad_high;
};

/// Images [first, last) of the result of a forward convolution.
inline MatmulPart images_part(const ConvSpec& spec, int64_t first, int64_t last) {
  const int64_t pixels = extent_of(spec.out, spec.spatial, 1).count();
  return {0, 1, first * pixels, last * pixels, 0, spec.out_channels};
}

}  // namespace rosin::engines
