// What the kernels of plane_body.hpp compute: filters over one channel's plane, which stands as padded rows so that no
// window leaves it. Included by tile_kernel.hpp.
#pragma once

#include <cstdint>

namespace rosin::engines {

/// Rows that are copied into wider ones, of every element or every second one.
template <class T> struct CopiedRows {
  const T* from = nullptr;  // row r is from[r * from_row + i * step], i < count
  int64_t step = 1;         // or 2
  int64_t from_row = 0;
  T* to = nullptr;  // row r is to[r * to_row + i]
  int64_t to_row = 0;
  int64_t rows = 0, count = 0;
};

/// Rows whose elements come in turn from two others, which end together or the first of them one element later.
template <class T> struct JoinedRows {
  const T *even = nullptr, *odd = nullptr;  // elements of row r: even[r * from_row + i], odd[r * from_row + i], ...
  int64_t from_row = 0;
  T* to = nullptr;  // row r is to[r * to_row + i], i < count
  int64_t to_row = 0;
  int64_t rows = 0, count = 0;
};

/// y(window, row) = sum over t < taps, in order, of x[offsets[t] + window + row * x_row] * weights[t] [+ bias] [max 0].
/// Up to one vector is read behind the last window of a row.
template <class T> struct PlaneRun {
  const T* x = nullptr;
  int64_t x_row = 0;
  const int64_t* offsets = nullptr;
  const T* weights = nullptr;
  int64_t taps = 0;
  bool square = false;  // nine taps, three by three: the next three are x_row behind
  T* y = nullptr;       // element (window, row) is y[window + row * y_row]
  int64_t y_row = 0;
  int64_t windows = 0, rows = 0;
  const T* bias = nullptr;  // one number, or null
  bool relu = false;
};

/// sums[t] += sum over windows and rows of x[offsets[t] + window + row * x_row] * y[window + row * y_row].
template <class T> struct PlaneDots {
  const T* x = nullptr;
  int64_t x_row = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;
  const T* y = nullptr;
  int64_t y_row = 0;
  int64_t windows = 0, rows = 0;
  T* sums = nullptr;
};

}  // namespace rosin::engines
