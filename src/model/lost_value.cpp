// Compares in long double, which holds all 64 bits of integers and every floating-point type.
#include "model/lost_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64);

constexpr int64_t block = 512;
using Exact = std::array<long double, block>;

template <class Wide> void read_as(Exact& exact, const void* values, DType type, int64_t count) {
  std::array<Wide, block> wide;
  convert_elements(wide.data(), dtype_of<Wide>, values, type, count);
  std::copy_n(wide.begin(), count, exact.begin());
}

/// Elements as they are; of complex ones the real parts.
void read_exactly(Exact& exact, const void* values, DType type, int64_t count) {
  if (type == UInt64) return read_as<uint64_t>(exact, values, type, count);
  if (type == Bool || is_integer(type)) return read_as<int64_t>(exact, values, type, count);
  read_as<double>(exact, values, type, count);
}

std::string text_of(long double value, DType type) {
  char text[64];
  std::snprintf(text, sizeof text, is_float(type) ? "%.9Lg" : "%.0Lf", value);
  return text;
}

/// The same for elements in memory.
std::optional<std::string> lost_element(const unsigned char* bytes, DType from, DType to, int64_t count) {
  const bool may_round = is_float(from) && !is_integer(to) && to != Bool;
  Exact before, after;
  alignas(16) unsigned char converted[block * 16];
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t part = std::min(block, count - begin);
    const unsigned char* source = bytes + static_cast<size_t>(begin) * size_of(from);
    convert_elements(converted, to, source, from, part);
    read_exactly(before, source, from, part);
    read_exactly(after, converted, to, part);
    for (size_t i = 0; i < static_cast<size_t>(part); ++i) {
      const bool held = may_round ? !std::isfinite(before[i]) || std::isfinite(after[i]) : before[i] == after[i];
      if (!held) return text_of(before[i], from);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> lost_value(const Array& x, DType type) {
  if (x.dtype() == type || is_complex(x.dtype())) return std::nullopt;
  if (is_scalar(*x.node())) {
    const ScalarValue number = scalar_value(*x.node());
    const void* value = is_float(x.dtype()) ? static_cast<const void*>(&number.real) : &number.integer;
    return lost_element(static_cast<const unsigned char*>(value), is_float(x.dtype()) ? Float64 : Int64, type, 1);
  }
  const Array values = on_cpu(x);
  return lost_element(static_cast<const unsigned char*>(values.node()->data()), x.dtype(), type, x.count());
}

}  // namespace rosin
