// How neighbours share a line of elements that are combined. It follows from sizes alone, so that a sum has one order
// on every device, whether it is computed alone or together with other things, and whatever is loaded as a vector. (But
// for rows of kernels that add up over rows on their way, see RowSums: no such kernel is written in the mode exact.)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/launches.hpp"

namespace rosin::kernels {

inline constexpr int widest_strip = 8;
inline constexpr int64_t least_run = 32;  // shorter ones have no strips: one code serves them all

/// Elements of a strip: neighbours that one item takes. Strips divide `run`.
inline int strip_of(int64_t run) {
  int strip = run < least_run ? 1 : widest_strip;
  while (run % strip != 0) strip /= 2;
  return strip;
}

/// Item `lane` of `lanes`, a power of two, takes strips number lane, lane + lanes, ... of the line.
struct Shares {
  int strip = 1;
  int64_t lanes = 1;
  int64_t turns = 1;  // strips of an item, at most

  /// Strips lie within runs of so many elements, which divide the line. What would take two warps takes one, whose
  /// items have two strips each: they wait for no other. `wide`: not so, where items keep much of each element.
  Shares(int64_t length, int64_t run, bool wide = false) : strip(strip_of(run)) {
    const int64_t strips = std::max<int64_t>((length + strip - 1) / strip, 1);
    lanes = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(strips))), items_of_group);
    if (strip > 1 && lanes == 64 && !wide) lanes = 32;
    turns = (strips + lanes - 1) / lanes;
  }
};

}  // namespace rosin::kernels
