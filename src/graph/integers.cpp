// The rules of integer types; see integers.hpp.
#include "graph/integers.hpp"

#include <string>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"

namespace rosin {
namespace {

std::string text_of(const Node& number) {
  const int64_t value = scalar_value(number).integer;
  return number.dtype == DType::UInt64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

/// A type that holds both the elements and the number.
DType wider(DType type, const Node& number) {
  for (const DType wide : {DType::Int32, DType::Int64, DType::UInt64}) {
    const IntegerBounds outer = bounds_of(wide), inner = bounds_of(type);
    if (outer.lowest <= inner.lowest && outer.highest >= inner.highest && beyond(wide, number) == 0) return wide;
  }
  return DType::Float64;
}

}  // namespace

DType common_integer(std::string_view op, DType a, DType b) {
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_signed(a) == is_signed(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (u == DType::UInt64) {
    throw Error(ErrorKind::dtype, std::string(op) + ": no integer type holds both " + to_string(a) + " and " +
                                      to_string(b) + "; got such operands; convert one, e.g. with cast(x, Int64)");
  }
  if (size_of(s) > size_of(u)) return s;
  if (size_of(u) == 1) return DType::Int16;
  return size_of(u) == 2 ? DType::Int32 : DType::Int64;
}

int beyond(DType type, const Node& number) {
  const IntegerBounds bounds = bounds_of(type);
  const int64_t value = scalar_value(number).integer;
  if (value < 0 && number.dtype != DType::UInt64) return value < bounds.lowest ? -1 : 0;
  return static_cast<uint64_t>(value) > bounds.highest ? 1 : 0;
}

void require_held(std::string_view op, DType type, const Array& number) {
  const Node& node = *number.node();
  const bool whole = is_integer(node.dtype) || node.dtype == DType::Bool;
  if (is_integer(type) && whole && is_scalar(node) && beyond(type, node) != 0) throw_not_held(op, type, node);
}

void throw_not_held(std::string_view op, DType type, const Node& number) {
  const IntegerBounds bounds = bounds_of(type);
  throw Error(ErrorKind::dtype, std::string(op) + ": a number beside an array of " + to_string(type) +
                                    " must be one that the type holds, " + std::to_string(bounds.lowest) + " to " +
                                    std::to_string(bounds.highest) + "; got " + text_of(number) +
                                    "; convert the array with cast(x, " + to_string(wider(type, number)) + ")");
}

}  // namespace rosin
