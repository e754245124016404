// Padded rows of planes: images of one channel as engines of planes read them, copied into scratch block by block with
// what stands for padding around them, so that no window leaves them. A row has `stride` parts, each of every so many
// places, so that a tap reads neighbouring windows' elements beside each other. Read after tile_kernel.hpp; next
// plane_conv.cpp, plane_pool.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/// Windows along one dim, over places: elements `spread` apart behind `pad` places, and padding elsewhere.
struct Windows {
  int64_t in = 1, windows = 1, taps = 1, stride = 1, dilation = 1;
  int64_t pad = 0;  // less than 0: the first elements are in no window
  int64_t spread = 1;

  /// How far a window reaches.
  int64_t reach() const { return (taps - 1) * dilation + 1; }
  /// Places that so many windows reach over.
  int64_t places(int64_t count) const { return (count - 1) * stride + reach(); }
  /// The element at a place, or -1.
  int64_t element(int64_t place) const {
    const int64_t at = place - pad;
    return at >= 0 && at % spread == 0 && at / spread < in ? at / spread : -1;
  }
};

/// How the rows of a block stand, and the way to them.
template <class T> class PaddedRows {
 public:
  /// Of `planes` planes of three dims, one behind the other.
  PaddedRows(const Windows& w, const Windows& h, const Windows& d, int64_t planes)
      : w_(w), h_(h), d_(d), planes_(planes), kernels_(tile_kernels_for(w.windows * int64_t{sizeof(T)}).of<T>()),
        part_(ceil_div(w.places(w.windows), w.stride)), row_(part_ * w.stride) {
    const int64_t row_bytes = planes * d.taps * row_ * int64_t{sizeof(T)};
    const int64_t fitting = (block_bytes / row_bytes - (h.reach() - 1)) / h.stride;
    block_ = std::min(h.windows, std::max(row_unit, fitting / row_unit * row_unit));
    slab_ = h.places(block_) * row_;
  }

  int64_t row() const { return row_; }      // places from a row to the next
  int64_t block() const { return block_; }  // rows of windows
  int64_t count() const { return planes_ * d_.taps * slab_; }
  /// Where the tap at `at` of the kernel finds the first window's element, in plane `plane`.
  int64_t offset(const Extent& at, int64_t plane) const {
    const int64_t w = at.w * w_.dilation;
    return (plane * d_.taps + at.d) * slab_ + at.h * h_.dilation * row_ + w % w_.stride * part_ + w / w_.stride;
  }

  /// Calls visit(depth, first row, rows) for each block of rows of windows.
  template <class Visit> void each_block(Visit visit) const {
    for (int64_t d = 0; d < d_.windows; ++d) {
      for (int64_t h = 0; h < h_.windows; h += block_) visit(d, h, std::min(block_, h_.windows - h));
    }
  }

  /// What a block reads: `to` holds `outside` everywhere, or what other blocks of this call have left.
  void fill(const T* planes, int64_t d, int64_t h, int64_t rows, T outside, T* to) const {
    for (int64_t plane = 0; plane < planes_; ++plane) {
      for (int64_t tap = 0; tap < d_.taps; ++tap) {
        const int64_t element = d_.element(d * d_.stride + tap * d_.dilation);
        T* const slab = to + (plane * d_.taps + tap) * slab_;
        if (element >= 0)
          fill_slab(planes + (plane * d_.in + element) * h_.in * w_.in, h * h_.stride, h_.places(rows), outside, slab);
        else if (!is_one_block()) std::fill_n(slab, slab_, outside);
      }
    }
  }

 private:
  static constexpr int64_t block_bytes = 16384;  // of rows, about: they stay in the first cache
  static constexpr int64_t row_unit = 4;         // rows of windows that kernels compute at a time

  /// Whether all results read the same places.
  bool is_one_block() const { return d_.windows == 1 && h_.windows == block_; }

  /// Rows of places of a plane, from `first` on.
  void fill_slab(const T* plane, int64_t first, int64_t rows, T outside, T* to) const {
    if (h_.spread == 1) {
      const int64_t begin = std::clamp<int64_t>(h_.pad - first, 0, rows);
      const int64_t end = std::clamp<int64_t>(h_.pad + h_.in - first, begin, rows);
      if (!is_one_block()) {
        std::fill_n(to, begin * row_, outside);
        std::fill_n(to + end * row_, (rows - end) * row_, outside);
      }
      if (begin < end) fill_rows(plane + (first + begin - h_.pad) * w_.in, end - begin, to + begin * row_);
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t element = h_.element(first + row);
      if (element >= 0) fill_rows(plane + element * w_.in, 1, to + row * row_);
      else if (!is_one_block()) std::fill_n(to + row * row_, row_, outside);
    }
  }

  void fill_rows(const T* from, int64_t rows, T* to) const {
    for (int64_t part = 0; part < w_.stride; ++part) {
      const int64_t shift = w_.pad - part;
      const int64_t begin = w_.spread == 1 ? ceil_div(shift, w_.stride) : ceil_div(-shift, w_.spread);
      const int64_t end = w_.spread == 1 ? std::min(part_, ceil_div(w_.in + shift, w_.stride))
                                         : std::min(w_.in, ceil_div(row_ - shift, w_.spread));
      if (begin >= end) continue;
      const bool spreads = w_.spread > 1;
      const T* first = from + (spreads ? begin : begin * w_.stride - shift);
      T* const places = to + part * part_ + (spreads ? shift + begin * w_.spread : begin);
      copy_rows({first, w_.stride, w_.in, places, row_, rows, end - begin});
    }
  }

  void copy_rows(const CopiedRows<T>& run) const {
    if (w_.spread == 1 && run.step <= 2) return kernels_.copy_rows(run);
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* from = run.from + row * run.from_row;
      T* to = run.to + row * run.to_row;
      for (int64_t i = 0; i < run.count; ++i) to[i * w_.spread] = from[i * run.step];
    }
  }

  Windows w_, h_, d_;
  int64_t planes_;
  const TypedKernels<T>& kernels_;
  int64_t part_, row_;            // elements of a part, of a row
  int64_t block_ = 1, slab_ = 1;  // rows of windows of a block; elements of a slab
};

}  // namespace rosin::engines
