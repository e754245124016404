// How vendor calls are cut into chunks: by shape only, never by thread count. Read after vendor.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engines/vendor.hpp"

namespace rosin::engines {

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
/// Where part `i` of `parts` nearly equal ones of `count` begins.
constexpr int64_t part_begin(int64_t count, int64_t parts, int64_t i) { return count * i / parts; }

/// A matmul cut along one of its three dims into equal chunks and one shorter tail.
struct MatmulCut {
  enum class Axis : uint8_t { items, columns, rows };
  Axis axis = Axis::columns;
  int64_t batch = 0, n = 0, m = 0;
  int64_t length = 0;  // of the axis
  int64_t step = 1;    // length of a full chunk

  int64_t chunks() const { return batch == 0 || n == 0 || m == 0 ? 0 : (length + step - 1) / step; }
  int64_t tail() const { return length - (chunks() - 1) * step; }
  MatmulPart part(int64_t chunk) const {
    MatmulPart whole{0, batch, 0, n, 0, m};
    const int64_t first = chunk * step, last = std::min(length, first + step);
    if (axis == Axis::items) whole.first_item = first, whole.last_item = last;
    if (axis == Axis::columns) whole.first_column = first, whole.last_column = last;
    if (axis == Axis::rows) whole.first_row = first, whole.last_row = last;
    return whole;
  }
};

/// How many chunks work of so many microseconds is worth: 1 below about 10, at most 8 below 9 milliseconds, at most 64.
/// A power of two up to 8, and even beyond: of three or five chunks one of two threads would have one more.
int64_t worthwhile_chunks(int64_t microseconds);

/// About what a product takes on one thread that does `thousands_per_microsecond` thousand multiply-adds: the time of
/// its sums, or that of reading the operands where it has few columns.
int64_t microseconds_of(const MatmulSpec& spec, int64_t thousands_per_microsecond);

/// The cut of a product computed at `per_microsecond` thousand multiply-adds.
MatmulCut cut_matmul(const MatmulSpec& spec, int64_t thousands_per_microsecond);

/// How many images one chunk of a convolution or pooling takes, when one image costs `operations`.
int64_t images_per_chunk(int64_t batch, int64_t operations, int64_t thousands_per_microsecond);

}  // namespace rosin::engines
