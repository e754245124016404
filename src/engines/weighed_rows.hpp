// What the kernels of weighed sums are given. Read next: weighed_body.hpp (the kernels), cpu/weighed_sums.cpp (who
// calls them).
#pragma once

#include <algorithm>
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
/// a line's results. With `rows` and one tap also along the rows of planes: line j of the `lines` results of a plane is
/// row_weights[j] times what line rows[j] of it gives, -0 where that weight is 0.
template <class T> struct WeighedLines {
  const T* from = nullptr;
  T* to = nullptr;
  int64_t lines = 0, in = 0, out = 0;
  const LaneTap<T>* taps = nullptr;
  int64_t taps_each = 1;
  const int32_t* rows = nullptr;
  const T* row_weights = nullptr;
  int64_t planes = 1, plane = 0;  // how many there are, and elements of one of `from`

  /// Where the register of results begins that has result `group`: the last one reaches back, to be whole.
  int64_t begin_of(int64_t group, int64_t lanes) const { return std::min(group, std::max<int64_t>(0, out - lanes)); }
};

}  // namespace rosin::engines
