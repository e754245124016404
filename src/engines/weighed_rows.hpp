// What the kernels of weighed sums are given. Read next: weighed_body.hpp (the kernels), cpu/weighed_sums.cpp (who
// calls them).
#pragma once

#include <cstdint>

namespace rosin::engines {

/// Row j of `to` = sum over t < taps of weights[j * taps + t] * row places[j * taps + t] of an array, in this order,
/// from -0 on. Rows stand one behind another; what has the weight 0 is left out.
template <class T> struct WeighedRows {
  const T* from = nullptr;  // the array's row `first`, and those behind it
  int64_t first = 0;
  T* to = nullptr;
  int64_t count = 0, rows = 0;  // elements of a row; rows of `to`
  const int32_t* places = nullptr;
  const T* weights = nullptr;
  int64_t taps = 1;
};

/// One tap of as many neighbouring results as a register has lanes: each takes an element of as many neighbours.
template <class T> struct LaneTap {
  static constexpr int most_lanes = 16;
  int32_t begin = 0;               // where these are in a line
  int32_t lanes[most_lanes] = {};  // the one that each result takes, -1: none, which has the weight -0
  T weights[most_lanes] = {};
};

/// The same sums along lines of `in` elements, which become lines of `out`. `taps`: `taps_each` for each register of
/// a line's results.
template <class T> struct WeighedLines {
  const T* from = nullptr;
  T* to = nullptr;
  int64_t lines = 0, in = 0, out = 0;
  const LaneTap<T>* taps = nullptr;
  int64_t taps_each = 1;
};

}  // namespace rosin::engines
