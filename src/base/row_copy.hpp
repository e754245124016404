// Rows of a few bytes, which calls of memcpy would take longer for than for the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rosin {

/// So many rows, each `bytes` long, from `from_step` bytes apart to `to_step` bytes apart.
struct RowCopy {
  int64_t rows = 0;
  size_t bytes = 0;
  int64_t to_step = 0, from_step = 0;
};

/// Rows of as many bytes as a Part has, or up to twice as many: one move each, or two, which may overlap.
template <class Part> void move_rows(const RowCopy& copy, unsigned char* to, const unsigned char* from) {
  const auto walk = [&](auto&& move) {
    for (int64_t row = 0; row < copy.rows; ++row, to += copy.to_step, from += copy.from_step) move();
  };
  const size_t second = copy.bytes - sizeof(Part);
  if (second == 0) return walk([&] { std::memcpy(to, from, sizeof(Part)); });
  walk([&] {
    Part first, last;
    std::memcpy(&first, from, sizeof(Part));
    std::memcpy(&last, from + second, sizeof(Part));
    std::memcpy(to, &first, sizeof(Part));
    std::memcpy(to + second, &last, sizeof(Part));
  });
}

/// What is written and what is read do not overlap.
inline void copy_rows(const RowCopy& copy, void* to, const void* from) {
  struct Sixteen {
    uint64_t halves[2];
  };
  struct ThirtyTwo {
    Sixteen halves[2];
  };
  auto* out = static_cast<unsigned char*>(to);
  const auto* x = static_cast<const unsigned char*>(from);
  if (copy.bytes < 2) return move_rows<uint8_t>(copy, out, x);
  if (copy.bytes < 4) return move_rows<uint16_t>(copy, out, x);
  if (copy.bytes < 8) return move_rows<uint32_t>(copy, out, x);
  if (copy.bytes < 16) return move_rows<uint64_t>(copy, out, x);
  if (copy.bytes < 32) return move_rows<Sixteen>(copy, out, x);
  if (copy.bytes <= 64) return move_rows<ThirtyTwo>(copy, out, x);
  for (int64_t row = 0; row < copy.rows; ++row, out += copy.to_step, x += copy.from_step) {
    std::memcpy(out, x, copy.bytes);
  }
}

}  // namespace rosin
