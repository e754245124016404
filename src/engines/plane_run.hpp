// What the kernels of plane_body.hpp compute: filters over one channel's plane, which stands as padded rows so that no
// window leaves it, and gradients of pooling. Included by tile_kernel.hpp.
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

/// What windows give back, beside each other on a grid: element (window, row) is grid[window + row * grid_row].
template <class T> struct GivenGradients {
  const T* x =
      nullptr;  // element of tap t: x[offsets[t] + window + row * x_row]; null: each tap gets the same, of means
  int64_t x_row = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;
  const T *y = nullptr, *dy = nullptr;  // element (window, row) is dy[window + row * windows]
  int64_t windows = 0, rows = 0;
  T share = T(1);                       // of dy
  T *picks = nullptr, *grid = nullptr;  // the first tap that equals y, or the first NaN's, or `taps`; and dy * share
  int64_t grid_row = 0;
};

/// to[i + row * to_row] = the sum, in order, of grid[i / step + row * grid_row + offset] over the taps of i % step,
/// where picks has the tap's number there. Up to a vector is read behind the last one.
template <class T> struct PulledGradients {
  struct Taps {
    const int64_t* offsets = nullptr;
    const T* numbers = nullptr;
    int64_t count = 0;
  };
  const T *picks = nullptr, *grid = nullptr;  // no picks: all count
  int64_t grid_row = 0;
  Taps taps[2];
  int64_t step = 1;  // or 2
  T* to = nullptr;
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
