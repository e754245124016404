// Slice: which elements of one dim are meant, of `index`, `set` and x(ranges...). Counts from 0, half-open; negative
// numbers count from the end.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>

namespace rosin {

/// As `stop` of a slice: up to the end of the dim (with a negative step: down to element 0).
inline constexpr int64_t to_end = std::numeric_limits<int64_t>::max();

/// One dim of `index`: a range, or one index (whose dim disappears).
struct Slice {
  int64_t start = 0;
  int64_t stop = to_end;
  int64_t step = 1;
  bool single = false;

  Slice() = default;
  /// One index.
  template <std::integral T> Slice(T at) : start(static_cast<int64_t>(at)), single(true) {}
  Slice(int64_t first, int64_t last, int64_t by) : start(first), stop(last), step(by) {}
};

/// All of a dim; elements [start, stop); every step-th of them.
inline Slice slice() { return {}; }
inline Slice slice(int64_t start, int64_t stop, int64_t step = 1) { return {start, stop, step}; }

}  // namespace rosin
