// Integer types: what they hold, what they become beside each other, and which C++ numbers may stand beside them.
// Read next: record.cpp (where the rules are applied).
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include <rosin/array.hpp>

namespace rosin {

constexpr bool is_signed(DType type) noexcept {
  return type == DType::Int8 || type == DType::Int16 || type == DType::Int32 || type == DType::Int64;
}

/// The lowest and the highest number of an integer type.
struct IntegerBounds {
  int64_t lowest;
  uint64_t highest;
};
constexpr IntegerBounds bounds_of(DType type) noexcept {
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  if (!is_signed(type)) return {0, std::numeric_limits<uint64_t>::max() >> unused};
  return {std::numeric_limits<int64_t>::min() >> unused,
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max() >> unused)};
}

/// The type that holds two integer types (or Bool), as in NumPy. Error (dtype): none holds UInt64 and a signed one.
DType common_integer(std::string_view op, DType a, DType b);

/// A whole C++ number beside an integer type: -1 where it is below what the type holds, 1 above, 0 where it is held.
int beyond(DType type, const Node& number);
/// Error (dtype) where the integer type does not hold a C++ number that stands for an element; fine for all else.
void require_held(std::string_view op, DType type, const Array& number);
[[noreturn]] void throw_not_held(std::string_view op, DType type, const Node& number);

}  // namespace rosin
