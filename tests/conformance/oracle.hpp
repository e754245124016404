// What each operation and each element type means, in plain C++ and by other ways than a device takes: integers in 128
// bits, 32-bit floats in doubles, 16-bit floats by a table of all of them. Read first: rosin/backend.h (Kernels).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <rosin/backend.h>

namespace rosin::conformance {

/// A Bool: a byte 0 or 1.
using Bool = uint8_t;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

template <class T>
concept Float = std::is_floating_point_v<T>;
template <class T>
concept Integer = std::is_integral_v<T> && !std::same_as<T, Bool>;

/// The rosin_scalar_type of T, and the rosin_type of elements that hold one.
template <class T>
constexpr int scalar_of = std::same_as<T, Bool>       ? ROSIN_SCALAR_BOOL
                          : std::same_as<T, int32_t>  ? ROSIN_SCALAR_INT32
                          : std::same_as<T, uint32_t> ? ROSIN_SCALAR_UINT32
                          : std::same_as<T, int64_t>  ? ROSIN_SCALAR_INT64
                          : std::same_as<T, uint64_t> ? ROSIN_SCALAR_UINT64
                          : std::same_as<T, float>    ? ROSIN_SCALAR_FLOAT32
                                                      : ROSIN_SCALAR_FLOAT64;
inline constexpr int32_t element_of_scalar[] = {ROSIN_BOOL,   ROSIN_INT32,   ROSIN_UINT32, ROSIN_INT64,
                                                ROSIN_UINT64, ROSIN_FLOAT32, ROSIN_FLOAT64};
template <class T> constexpr int32_t element_of = element_of_scalar[scalar_of<T>];

/// Equal bits, or both NaN.
template <class T> bool same(T x, T y) {
  if (x != x && y != y) return true;
  return std::memcmp(&x, &y, sizeof(T)) == 0;
}

/// Numbers where operations are known to go wrong.
template <class T> std::vector<T> special() {
  if constexpr (std::same_as<T, Bool>) {
    return {0, 1};
  } else if constexpr (Float<T>) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values;
    for (const T x : {T(0),
                      T(0.5),
                      T(1),
                      T(1.5),
                      T(2.5),
                      T(0.1),
                      T(3.3),
                      T(7),
                      T(0x1p23),
                      T(0x1p24),
                      T(0x1p31),
                      T(0x1p31) - T(128),
                      T(0x1p32),
                      T(0x1p32) - T(256),
                      T(0x1p53),
                      T(0x1p63),
                      T(0x1p63) - T(0x1p40),
                      T(0x1p64),
                      T(0x1p64) - T(0x1p41),
                      T(1e-30),
                      T(1e30),
                      Limits::max(),
                      Limits::min(),
                      Limits::denorm_min(),
                      Limits::denorm_min() * T(12345),
                      Limits::infinity()}) {
      values.push_back(x);
      values.push_back(-x);
    }
    values.push_back(Limits::quiet_NaN());
    return values;
  } else {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 64, 65, 1000, 16777217};
    const std::vector<T> small = values;
    for (const T x : small) values.push_back(static_cast<T>(T{0} - x));
    for (const T x : {Limits::min(), static_cast<T>(Limits::min() + 1), Limits::max(),
                      static_cast<T>(Limits::max() - 1), static_cast<T>(0x5a5a5a5a12345678)}) {
      values.push_back(x);
    }
    return values;
  }
}

/// Whether the operation takes operands of T and gives a T.
template <class T> bool computes(rosin_operation operation) {
  switch (operation) {
    case ROSIN_ADD:
    case ROSIN_SUBTRACT:
    case ROSIN_MULTIPLY:
    case ROSIN_DIVIDE:
    case ROSIN_NEGATE:
    case ROSIN_ABSOLUTE:
    case ROSIN_MINIMUM:
    case ROSIN_MAXIMUM: return !std::same_as<T, Bool>;
    case ROSIN_FLOOR:
    case ROSIN_CEIL:
    case ROSIN_TRUNC:
    case ROSIN_ROUND_EVEN:
    case ROSIN_SQRT:
    case ROSIN_FMA: return Float<T>;
    case ROSIN_LOGICAL_AND:
    case ROSIN_LOGICAL_OR:
    case ROSIN_LOGICAL_NOT: return std::same_as<T, Bool>;
    case ROSIN_BIT_AND:
    case ROSIN_BIT_OR:
    case ROSIN_BIT_XOR:
    case ROSIN_SHIFT_LEFT:
    case ROSIN_SHIFT_RIGHT:
    case ROSIN_SHIFT_RIGHT_ZERO:
    case ROSIN_MULTIPLY_HIGH: return Integer<T>;
    default: return false;
  }
}

template <Float T> T computed(rosin_operation operation, T x, T y, T z) {
  // One rounding more, from double to float, changes nothing in these operations.
  const double a = x, b = y;
  const auto sign = std::bit_cast<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(T(-0.0));
  const auto bits = std::bit_cast<std::remove_const_t<decltype(sign)>>(x);
  switch (operation) {
    case ROSIN_ADD: return static_cast<T>(a + b);
    case ROSIN_SUBTRACT: return static_cast<T>(a - b);
    case ROSIN_MULTIPLY: return static_cast<T>(a * b);
    case ROSIN_DIVIDE: return static_cast<T>(a / b);
    case ROSIN_NEGATE: return std::bit_cast<T>(bits ^ sign);
    case ROSIN_ABSOLUTE: return std::bit_cast<T>(bits & ~sign);
    case ROSIN_MINIMUM: return std::isnan(x) || std::isless(x, y) ? x : y;
    case ROSIN_MAXIMUM: return std::isnan(x) || std::isgreater(x, y) ? x : y;
    case ROSIN_FLOOR: return static_cast<T>(std::floor(a));
    case ROSIN_CEIL: return static_cast<T>(std::ceil(a));
    case ROSIN_TRUNC: return static_cast<T>(std::trunc(a));
    case ROSIN_ROUND_EVEN: return static_cast<T>(std::nearbyint(a));
    case ROSIN_SQRT: return static_cast<T>(std::sqrt(a));
    case ROSIN_FMA: return std::fma(x, y, z);
    default: return T{};
  }
}

template <Integer T> T computed(rosin_operation operation, T x, T y, T) {
  constexpr int bits = sizeof(T) * 8;
  const Wide a = x, b = y;
  const auto count = static_cast<int>(((b % bits) + bits) % bits);
  switch (operation) {
    case ROSIN_ADD: return static_cast<T>(a + b);
    case ROSIN_SUBTRACT: return static_cast<T>(a - b);
    case ROSIN_MULTIPLY: return static_cast<T>(a * b);
    case ROSIN_DIVIDE: return b == 0 ? T{0} : static_cast<T>(a / b);
    case ROSIN_NEGATE: return static_cast<T>(-a);
    case ROSIN_ABSOLUTE: return static_cast<T>(a < 0 ? -a : a);
    case ROSIN_MINIMUM: return x < y ? x : y;
    case ROSIN_MAXIMUM: return x > y ? x : y;
    case ROSIN_BIT_AND: return static_cast<T>(a & b);
    case ROSIN_BIT_OR: return static_cast<T>(a | b);
    case ROSIN_BIT_XOR: return static_cast<T>(a ^ b);
    case ROSIN_MULTIPLY_HIGH:
      if constexpr (std::is_signed_v<T>) return static_cast<T>((a * b) >> bits);
      else return static_cast<T>((UnsignedWide{x} * UnsignedWide{y}) >> bits);
    case ROSIN_SHIFT_LEFT: return static_cast<T>(a * (Wide{1} << count));
    case ROSIN_SHIFT_RIGHT: return static_cast<T>(a >> count);
    case ROSIN_SHIFT_RIGHT_ZERO: return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) / (Wide{1} << count));
    default: return T{};
  }
}

inline Bool computed(rosin_operation operation, Bool x, Bool y, Bool) {
  switch (operation) {
    case ROSIN_LOGICAL_AND: return x == 1 && y == 1;
    case ROSIN_LOGICAL_OR: return x == 1 || y == 1;
    default: return x == 0;
  }
}

template <class T> Bool compared(rosin_operation operation, T x, T y) {
  if (x != x || y != y) return operation == ROSIN_NOT_EQUAL;
  switch (operation) {
    case ROSIN_LESS: return x < y;
    case ROSIN_LESS_EQUAL: return x <= y;
    case ROSIN_EQUAL: return x == y;
    default: return x != y;
  }
}

template <class To, class From> To converted(From x) {
  if constexpr (std::same_as<To, Bool>) {
    return x == From{0} ? 0 : 1;
  } else if constexpr (Float<From> && Integer<To>) {
    if (std::isnan(x)) return 0;
    // 64 bits of fraction hold every bound.
    const auto exact = std::trunc(static_cast<long double>(x));
    if (exact >= static_cast<long double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (exact <= static_cast<long double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(static_cast<Wide>(exact));
  } else {
    return static_cast<To>(x);
  }
}

/// A 16-bit float format, by the numbers of its exponent and fraction bits.
class SmallFloat {
 public:
  SmallFloat(int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t infinity = ((1u << exponent_bits) - 1u) << fraction_bits;
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      const auto exponent = static_cast<int>(bits >> fraction_bits);
      const auto fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1u));
      const double ones = exponent ? std::ldexp(1.0, fraction_bits) : 0.0;
      values_.push_back(std::ldexp(ones + fraction, std::max(exponent, 1) - bias - fraction_bits));
    }
    // Rounding goes on as if there were one number more.
    beyond_ = std::ldexp(1.0, bias + 1);
  }

  float widened(uint16_t bits) const {
    const uint32_t magnitude = bits & 0x7fffu;
    const bool infinite = magnitude == values_.size();
    const double value = infinite                     ? std::numeric_limits<double>::infinity()
                         : magnitude < values_.size() ? values_[magnitude]
                                                      : std::numeric_limits<double>::quiet_NaN();
    return static_cast<float>(bits & 0x8000u ? -value : value);
  }

  /// The nearest, halves to even; NaN is any of many.
  uint16_t narrowed(float x) const {
    if (std::isnan(x)) return static_cast<uint16_t>(values_.size() + 1);
    const double size = std::fabs(static_cast<double>(x));
    const auto above = static_cast<size_t>(std::lower_bound(values_.begin(), values_.end(), size) - values_.begin());
    size_t chosen = above;
    if (above > 0) {
      const double high = above < values_.size() ? values_[above] : beyond_, low = values_[above - 1];
      const double up = high - size, down = size - low;
      if (down < up || (down == up && above % 2 == 1)) chosen = above - 1;
    }
    return static_cast<uint16_t>(chosen | (std::signbit(x) ? 0x8000u : 0u));
  }

  bool is_nan(uint16_t bits) const { return (bits & 0x7fffu) > values_.size(); }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;  // finite, not negative, ascending: values_[bits]
  double beyond_ = 0;
};

}  // namespace rosin::conformance
