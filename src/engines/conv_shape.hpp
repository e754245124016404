// A convolution's or pooling's sizes with all three spatial dims filled in. Read after vendor.hpp.
#pragma once

#include <array>
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

/// Elements of an image of a pooling's three operands and of its result; 0 where there is none.
inline std::array<int64_t, 4> image_counts(const PoolSpec& spec) {
  const int64_t in = extent_of(spec.in, spec.spatial, 1).count() * spec.channels;
  const int64_t out = extent_of(spec.out, spec.spatial, 1).count() * spec.channels;
  switch (spec.kind) {
    case PoolKind::max_backward: return {in, out, out, in};
    case PoolKind::mean_backward: return {out, 0, 0, in};
    default: return {in, 0, 0, out};
  }
}

/// Calls visit(tap, pixel) for each tap of the window at output place `at` that lies inside the input.
template <class Visit> void each_tap(const ConvShape& s, Extent at, bool flipped, Visit visit) {
  const int64_t taps = s.kernel.count();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Extent k{tap % s.kernel.w, tap / s.kernel.w % s.kernel.h, tap / s.kernel.w / s.kernel.h};
    const int64_t w = at.w * s.stride.w - s.pad_low.w + k.w * s.dilation.w;
    const int64_t h = at.h * s.stride.h - s.pad_low.h + k.h * s.dilation.h;
    const int64_t d = at.d * s.stride.d - s.pad_low.d + k.d * s.dilation.d;
    if (w < 0 || w >= s.in.w || h < 0 || h >= s.in.h || d < 0 || d >= s.in.d) continue;
    visit(flipped ? taps - 1 - tap : tap, (d * s.in.h + h) * s.in.w + w);
  }
}

/// Calls visit(place, pixel number) for each output place.
template <class Visit> void each_output(const ConvShape& s, Visit visit) {
  for (int64_t pixel = 0; pixel < s.out.count(); ++pixel) {
    visit(Extent{pixel % s.out.w, pixel / s.out.w % s.out.h, pixel / s.out.w / s.out.h}, pixel);
  }
}

/// Images [first, last) of the result of a forward convolution.
inline MatmulPart images_part(const ConvSpec& spec, int64_t first, int64_t last) {
  const int64_t pixels = extent_of(spec.out, spec.spatial, 1).count();
  return {0, 1, first * pixels, last * pixels, 0, spec.out_channels};
}

}  // namespace rosin::engines
