// The sizes of a reduction over other dims than the row, and how the items of a group stand in it. Read next:
// roots.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/launches.hpp"
#include "kernels/shares.hpp"

namespace rosin::kernels {

inline int64_t power_of_two_for(int64_t elements, int64_t most) {
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(elements, 1))));
  return std::min(wanted, most);
}

/// The sizes of a reduction: dims of its operand begin at `first`.
struct RootSizes {
  int first = 0;
  uint8_t keep = 0;  // bits of kept dims
  int64_t results = 1, reduced = 1;
  int64_t run = 1;  // elements of the first dims that are all kept, or all reduced
  int64_t parts = 1, part_size = 1;

  RootSizes(const KernelLayout& sizes, int begin, uint8_t kept) : first(begin), keep(kept) {
    bool same = true;
    for (int d = first; d < sizes.dims; ++d) {
      const bool keeps = keep >> d & 1;
      (keeps ? results : reduced) *= sizes.sizes[d];
      same = same && keeps == columns();
      if (same) run *= sizes.sizes[d];
    }
  }
  bool columns() const { return keep >> first & 1; }
};

/// How the items of a group stand in a reduction that keeps the first dim: `columns` beside one another, each of which
/// owns `strip` results, in `lines`.
struct ColumnGrid {
  int strip;
  int64_t columns, lines;

  ColumnGrid(int64_t results, int64_t run)
      : strip(strip_of(run)), columns(power_of_two_for((results + strip - 1) / strip, 32)),
        lines(items_of_group / columns) {}
  ColumnGrid(int of_item, int64_t beside) : strip(of_item), columns(beside), lines(items_of_group / beside) {}
  int64_t blocks(int64_t results, int of_item) const { return groups_for(results, columns * of_item); }
};

}  // namespace rosin::kernels
