// By all threads, block by block: doubles say fast that nothing is lost; only a block where they do not is looked at in
// two of them for each value, which hold all 64 bits of integers. (A long double does so on some systems only.)
#include "model/lost_value.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>

#include "base/workers.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

constexpr int64_t block = 1024;
constexpr int64_t blocks_of_a_chunk = 64;
constexpr double doubles_are_exact = 9007199254740992.0;  // below 2^53 every integer is itself

using Doubles = std::array<double, block>;
/// A value of any type but complex ones: the nearest double, and what is missing from it.
struct ExactValue {
  double near, rest;
  bool operator==(const ExactValue&) const = default;
};

using Exact = std::array<ExactValue, block>;

ExactValue exact(double value) { return {value, 0}; }

template <std::integral T> ExactValue exact(T value) {
  using Wider = __int128;  // (2^63 and 2^64 may be nearest)
  const auto near = static_cast<double>(value);
  return {near, static_cast<double>(static_cast<Wider>(value) - static_cast<Wider>(near))};
}

/// Floating-point types of which the second has an exponent at least as large as the first.
bool always_held(DType from, DType to) {
  if (!is_float(from) || !is_float(to)) return from == to;
  return from == to || from == Float16 || to == Float64 || (from == BFloat16 && to == Float32);
}

template <class Wide> void read_as(Exact& read, const void* values, DType type, int64_t count) {
  std::array<Wide, block> wide;
  convert_elements(wide.data(), dtype_of<Wide>, values, type, count);
  std::transform(wide.begin(), wide.begin() + count, read.begin(), [](Wide value) { return exact(value); });
}

void read_exactly(Exact& read, const void* values, DType type, int64_t count) {
  if (type == UInt64) return read_as<uint64_t>(read, values, type, count);
  if (type == Bool || is_integer(type)) return read_as<int64_t>(read, values, type, count);
  read_as<double>(read, values, type, count);
}

template <class Wide> Wide first_as(const void* values, DType type) {
  Wide value;
  convert_elements(&value, dtype_of<Wide>, values, type, 1);
  return value;
}

/// The first value as people write it.
std::string text_of(const void* values, DType type) {
  if (type == UInt64) return std::to_string(first_as<uint64_t>(values, type));
  if (!is_float(type)) return std::to_string(first_as<int64_t>(values, type));
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", first_as<double>(values, type));
  return text;
}

/// Elements of a block before and after the conversion.
struct Converted {
  const void* before;
  const void* after;
  DType from, to;
  int64_t count;

  bool may_round() const { return is_float(from) && is_float(to); }

  bool surely_held() const {
    Doubles was, is;
    convert_elements(was.data(), Float64, before, from, count);
    convert_elements(is.data(), Float64, after, to, count);
    constexpr double infinite = std::numeric_limits<double>::infinity();
    const auto n = static_cast<size_t>(count);
    const auto below = [](double x, double bound) { return static_cast<int>(std::abs(x) < bound); };
    int held = 1;  // by bits, so that loops become vectors
    if (may_round()) {
      for (size_t i = 0; i < n; ++i) held &= (below(was[i], infinite) ^ 1) | below(is[i], infinite);
    } else {
      for (size_t i = 0; i < n; ++i) held &= static_cast<int>(was[i] == is[i]) & below(was[i], doubles_are_exact);
    }
    return held != 0;
  }

  /// -1: all are held.
  int64_t first_lost() const {
    if (surely_held()) return -1;
    Exact was, is;
    read_exactly(was, before, from, count);
    read_exactly(is, after, to, count);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const bool held = may_round() ? !std::isfinite(was[i].near) || std::isfinite(is[i].near) : was[i] == is[i];
      if (!held) return static_cast<int64_t>(i);
    }
    return -1;
  }
};

/// Between two elements; -1: all are held.
int64_t first_lost(const unsigned char* bytes, DType from, DType to, int64_t begin, int64_t end) {
  alignas(16) unsigned char converted[block * 16];
  for (; begin < end; begin += block) {
    const int64_t count = std::min(block, end - begin);
    const unsigned char* source = bytes + static_cast<size_t>(begin) * size_of(from);
    convert_elements(converted, to, source, from, count);
    const int64_t lost = Converted{source, converted, from, to, count}.first_lost();
    if (lost >= 0) return begin + lost;
  }
  return -1;
}

}  // namespace

std::optional<std::string> lost_value(const void* values, DType from, DType to, int64_t count) {
  if (always_held(from, to)) return std::nullopt;
  const auto* const bytes = static_cast<const unsigned char*>(values);
  constexpr int64_t chunk = block * blocks_of_a_chunk;
  std::atomic<int64_t> first{count};
  parallel_for((count + chunk - 1) / chunk, [&](int64_t i) {
    if (first.load(std::memory_order_relaxed) < i * chunk) return;
    const int64_t lost = first_lost(bytes, from, to, i * chunk, std::min(count, (i + 1) * chunk));
    int64_t known = first.load(std::memory_order_relaxed);
    while (lost >= 0 && lost < known && !first.compare_exchange_weak(known, lost, std::memory_order_relaxed)) {}
  });
  const int64_t at = first.load();
  if (at == count) return std::nullopt;
  return text_of(bytes + static_cast<size_t>(at) * size_of(from), from);
}

std::optional<std::string> lost_value(const Array& x, DType type) {
  if (x.dtype() == type || is_complex(x.dtype())) return std::nullopt;
  if (is_scalar(*x.node())) {
    const ScalarValue number = scalar_value(*x.node());
    const bool real = is_float(x.dtype());
    const void* value = real ? static_cast<const void*>(&number.real) : &number.integer;
    return lost_value(value, real ? Float64 : Int64, type, 1);
  }
  if (always_held(x.dtype(), type)) return std::nullopt;
  const Array values = on_cpu(x);
  return lost_value(values.node()->data(), x.dtype(), type, x.count());
}

}  // namespace rosin
