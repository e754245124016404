// What the kernel of weighed sums is given. Read next: weighed_body.hpp (the kernel), cpu/weighed_sums.cpp (who calls
// it).
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

}  // namespace rosin::engines
