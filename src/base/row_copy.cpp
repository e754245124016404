// See row_copy.hpp.
#include "base/row_copy.hpp"

#include <cstring>

namespace rosin {
namespace {

/// Rows of as many bytes as a Part has, or up to twice as many: one move each, or two, which may overlap.
template <class Part> void move_rows(RowCopy copy, unsigned char* to, const unsigned char* from) {
  const size_t second = copy.bytes - sizeof(Part);
  Part first, last;
  for (int64_t row = 0; second == 0 && row < copy.rows; ++row, to += copy.to_step, from += copy.from_step) {
    std::memcpy(&first, from, sizeof(Part));
    std::memcpy(to, &first, sizeof(Part));
  }
  for (int64_t row = 0; second > 0 && row < copy.rows; ++row, to += copy.to_step, from += copy.from_step) {
    std::memcpy(&first, from, sizeof(Part));
    std::memcpy(&last, from + second, sizeof(Part));
    std::memcpy(to, &first, sizeof(Part));
    std::memcpy(to + second, &last, sizeof(Part));
  }
}

}  // namespace

void copy_rows(RowCopy copy, void* to, const void* from) {
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
