// What winograd.cpp and winograd_weights.cpp share: the squares that images are cut into, and where weights stand.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/tile_kernel.hpp"
#include "engines/vendor.hpp"

namespace rosin::engines {

namespace winograd {

inline constexpr int64_t taps = 9, side = WinogradKernels::side, window = WinogradKernels::window;
inline constexpr int64_t arrays = window * window;
inline constexpr int64_t most_rows = 32, block = 8;  // channels whose weights are turned together
inline constexpr int64_t no_offset = 0;

/// Images in CWHN that are read or written square by square.
struct Plane {
  int64_t w, h, channels;
  int64_t count() const { return w * h * channels; }
};

/// The squares of 4x4 pixels of results, row by row, and the pixels of images under them.
struct Squares {
  Plane image, result;
  int64_t pad_w, pad_h, batch;
  int64_t wide = (result.w + side - 1) / side, high = (result.h + side - 1) / side;  // squares of one image

  int64_t rows() const { return batch * high; }
  int64_t count() const { return rows() * wide; }
  /// The first pixel of a row of squares, among those of all results.
  int64_t first_pixel(int64_t row) const {
    return (row / high * result.h + std::min(side * (row % high), result.h)) * result.w;
  }

  /// The 6x6 pixels of `images` under a square; `nothing` where they are padding.
  void image_pixels(const float* images, const float* nothing, int64_t square, const float** pixels) const {
    const int64_t row = square / wide, left = square % wide * side - pad_w, top = row % high * side - pad_h;
    const float* base = images + row / high * image.count();
    for (int64_t y = top; y < top + window; ++y) {
      for (int64_t x = left; x < left + window; ++x) {
        const bool inside = y >= 0 && y < image.h && x >= 0 && x < image.w;
        *pixels++ = inside ? base + (y * image.w + x) * image.channels : nothing;
      }
    }
  }

  /// The 4x4 pixels of a square of `results`; `nothing` where there are none.
  template <class T> void result_pixels(T* results, T* nothing, int64_t square, T** pixels) const {
    const int64_t row = square / wide, left = square % wide * side, top = row % high * side;
    T* base = results + row / high * result.count();
    for (int64_t y = top; y < top + side; ++y) {
      for (int64_t x = left; x < left + side; ++x) {
        *pixels++ = y < result.h && x < result.w ? base + (y * result.w + x) * result.channels : nothing;
      }
    }
  }
};

inline Squares squares_of(const ConvSpec& spec) {
  const Plane x{spec.in[0], spec.in[1], spec.in_channels}, y{spec.out[0], spec.out[1], spec.out_channels};
  // The gradient by the image is a convolution of the gradient, with kernels that are turned round.
  if (spec.kind == ConvKind::backward_data) return {y, x, 2 - spec.pad_low[0], 2 - spec.pad_low[1], spec.batch};
  return {x, y, spec.pad_low[0], spec.pad_low[1], spec.batch};
}

/// Elements from one square's channels to the next's: not a power of two, whose lines would share their places in the
/// caches.
inline int64_t pitch_of(int64_t channels) { return round_up(channels, 16) + 16; }
inline int64_t step_of(int64_t elements) {
  return round_up(elements, 16) + 48;
}  // from one array to the next, likewise

/// Turns what is under `count` squares from `first` on: array k of square first + i goes to `to` + k * step + i *
/// pitch.
inline void turn_images(const Squares& squares, const float* images, const float* nothing, int64_t first, int64_t count,
                        float* to, int64_t pitch, int64_t step) {
  for (int64_t i = 0; i < count; ++i) {
    const float* pixels[arrays];
    squares.image_pixels(images, nothing, first + i, pixels);
    for (int row = 0; row < window; ++row) {
      tile_kernels().winograd.image_row(row, pixels, squares.image.channels, to + window * row * step + i * pitch,
                                        step);
    }
  }
}

/// Weights in memory: (3, 3, in, out). Blocks of them are turned: (rows, taps, count) for `rows` channels on the side
/// of the product's rows and `count` on the other.
class Filters {
 public:
  explicit Filters(const ConvSpec& spec)
      : in_(spec.in_channels), reversed_(spec.flipped != (spec.kind == ConvKind::backward_data)) {}

  /// move(place, some) for the nine taps, at `place` in memory, of pairs of channels c + i and first + row, in the
  /// order of memory; tap t is at some + t * rows of the block.
  template <class Move>
  void each(bool by_data, int64_t c, int64_t count, int64_t first, int64_t rows, float* some, Move move) const {
    for (int64_t outer = 0; outer < (by_data ? count : rows); ++outer) {
      for (int64_t inner = 0; inner < (by_data ? rows : count); ++inner) {
        if (by_data) move(((c + outer) * in_ + first + inner) * taps, some + outer * taps * rows + inner);
        else move(((first + outer) * in_ + c + inner) * taps, some + inner * taps * rows + outer);
      }
    }
  }
  /// From a pair of channels to the one `count` channels on, on the other side than the product's rows.
  int64_t distance(bool by_data, int64_t count) const { return by_data ? count * in_ * taps : count * taps; }
  /// Where Winograd's kernels find the first tap of a block of `rows`, and how far the next one is.
  float* first_tap(float* some, int64_t rows) const { return reversed_ ? some + (taps - 1) * rows : some; }
  int64_t tap_step(int64_t rows) const { return reversed_ ? -rows : rows; }

 private:
  int64_t in_;
  bool reversed_;
};

}  // namespace winograd

/// The gradient by the weights (winograd_weights.cpp).
std::unique_ptr<VendorCall> prepare_winograd_weights(const ConvSpec& spec);

}  // namespace rosin::engines
