// Size classes of memory pools: four to the doubling.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rosin {

inline constexpr int size_class_count = 4 * 64;

/// The class of a size: the doubling, and which quarter of it.
inline int size_class_of(size_t bytes) {
  const size_t units = std::max<size_t>(bytes, 1);
  const int doubling = static_cast<int>(std::bit_width(units - 1));
  if (doubling < 8) return 4 * 8 - 1;
  const size_t quarter = size_t{1} << (doubling - 3);
  const size_t above = units - (size_t{1} << (doubling - 1));
  return 4 * (doubling - 1) + static_cast<int>((above + quarter - 1) / quarter) + 3;
}

inline size_t bytes_of_size_class(int size_class) {
  const int doubling = (size_class - 4) / 4 + 1;
  const int quarters = (size_class - 4) % 4 + 1;
  return (size_t{1} << (doubling - 1)) + static_cast<size_t>(quarters) * (size_t{1} << (doubling - 3));
}

}  // namespace rosin
