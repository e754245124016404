// Rows of a few bytes, which calls of memcpy would take longer for than for the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin {

/// So many rows, each `bytes` long, from `from_step` bytes apart to `to_step` bytes apart.
struct RowCopy {
  int64_t rows = 0;
  size_t bytes = 0;
  int64_t to_step = 0, from_step = 0;
};

/// What is written and what is read do not overlap.
void copy_rows(RowCopy copy, void* to, const void* from);

}  // namespace rosin
