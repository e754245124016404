// The meaning of each primitive in C++, on one element. Compiled loops and the interpreter are both made from it, so
// they agree. Read first: primitives.hpp (the same in words).
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "scalar/body.hpp"
#include "scalar/primitives.hpp"

namespace rosin {

template <class T>
concept FloatElement = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept IntegerElement =
    std::same_as<T, int32_t> || std::same_as<T, uint32_t> || std::same_as<T, int64_t> || std::same_as<T, uint64_t>;
template <class T>
concept NumericElement = FloatElement<T> || IntegerElement<T>;

/// The C++ type of a ScalarType; Bool is bool in registers and a byte 0 or 1 in memory.
template <ScalarType type> struct ElementOf;
template <> struct ElementOf<ScalarType::boolean> {
  using Type = bool;
};
template <> struct ElementOf<ScalarType::int32> {
  using Type = int32_t;
};
template <> struct ElementOf<ScalarType::uint32> {
  using Type = uint32_t;
};
template <> struct ElementOf<ScalarType::int64> {
  using Type = int64_t;
};
template <> struct ElementOf<ScalarType::uint64> {
  using Type = uint64_t;
};
template <> struct ElementOf<ScalarType::float32> {
  using Type = float;
};
template <> struct ElementOf<ScalarType::float64> {
  using Type = double;
};

template <class T> inline constexpr ScalarType scalar_type_of = ScalarType::boolean;
template <> inline constexpr ScalarType scalar_type_of<int32_t> = ScalarType::int32;
template <> inline constexpr ScalarType scalar_type_of<uint32_t> = ScalarType::uint32;
template <> inline constexpr ScalarType scalar_type_of<int64_t> = ScalarType::int64;
template <> inline constexpr ScalarType scalar_type_of<uint64_t> = ScalarType::uint64;
template <> inline constexpr ScalarType scalar_type_of<float> = ScalarType::float32;
template <> inline constexpr ScalarType scalar_type_of<double> = ScalarType::float64;

/// How an element lies in memory.
template <class T> using Stored = std::conditional_t<std::same_as<T, bool>, uint8_t, T>;

/// Float32 <-> Int32, Float64 <-> Int64.
template <class T> struct SameBits;
template <> struct SameBits<float> {
  using Type = int32_t;
};
template <> struct SameBits<double> {
  using Type = int64_t;
};
template <> struct SameBits<int32_t> {
  using Type = float;
};
template <> struct SameBits<int64_t> {
  using Type = double;
};

/// Integers are computed unsigned, where wrapping around is defined; floats as they are.
template <class T> struct Wrapping {
  using Type = T;
};
template <IntegerElement T> struct Wrapping<T> {
  using Type = std::make_unsigned_t<T>;
};
template <class T> using WrappingOf = typename Wrapping<T>::Type;

template <Primitive p> struct Compute;

template <> struct Compute<Primitive::add> {
  template <NumericElement T> [[gnu::always_inline]] static T run(T x, T y) {
    return static_cast<T>(static_cast<WrappingOf<T>>(x) + static_cast<WrappingOf<T>>(y));
  }
};
template <> struct Compute<Primitive::subtract> {
  template <NumericElement T> [[gnu::always_inline]] static T run(T x, T y) {
    return static_cast<T>(static_cast<WrappingOf<T>>(x) - static_cast<WrappingOf<T>>(y));
  }
};
template <> struct Compute<Primitive::multiply> {
  template <NumericElement T> [[gnu::always_inline]] static T run(T x, T y) {
    return static_cast<T>(static_cast<WrappingOf<T>>(x) * static_cast<WrappingOf<T>>(y));
  }
};
template <> struct Compute<Primitive::divide> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x, T y) { return x / y; }
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) {
    if constexpr (std::is_signed_v<T>)
      if (y == -1) return static_cast<T>(WrappingOf<T>{0} - static_cast<WrappingOf<T>>(x));
    return y == 0 ? T{0} : x / y;
  }
};
template <> struct Compute<Primitive::negate> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return -x; }
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x) {
    return static_cast<T>(WrappingOf<T>{0} - static_cast<WrappingOf<T>>(x));
  }
};
template <> struct Compute<Primitive::absolute> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::fabs(x); }
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x) {
    return x < T{0} ? Compute<Primitive::negate>::run(x) : x;
  }
};
template <> struct Compute<Primitive::minimum> {
  template <NumericElement T> [[gnu::always_inline]] static T run(T x, T y) { return x < y || x != x ? x : y; }
};
template <> struct Compute<Primitive::maximum> {
  template <NumericElement T> [[gnu::always_inline]] static T run(T x, T y) { return x > y || x != x ? x : y; }
};
template <> struct Compute<Primitive::floor> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::floor(x); }
};
template <> struct Compute<Primitive::ceil> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::ceil(x); }
};
template <> struct Compute<Primitive::trunc> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::trunc(x); }
};
template <> struct Compute<Primitive::round_even> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::nearbyint(x); }
};
template <> struct Compute<Primitive::sqrt> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x) { return std::sqrt(x); }
};
template <> struct Compute<Primitive::fma> {
  template <FloatElement T> [[gnu::always_inline]] static T run(T x, T y, T z) { return std::fma(x, y, z); }
};
template <> struct Compute<Primitive::less> {
  template <class T> [[gnu::always_inline]] static bool run(T x, T y) { return x < y; }
};
template <> struct Compute<Primitive::less_equal> {
  template <class T> [[gnu::always_inline]] static bool run(T x, T y) { return x <= y; }
};
template <> struct Compute<Primitive::equal> {
  template <class T> [[gnu::always_inline]] static bool run(T x, T y) { return x == y; }
};
template <> struct Compute<Primitive::not_equal> {
  template <class T> [[gnu::always_inline]] static bool run(T x, T y) { return x != y; }
};
template <> struct Compute<Primitive::logical_and> {
  [[gnu::always_inline]] static bool run(std::same_as<bool> auto x, bool y) { return x & y; }
};
template <> struct Compute<Primitive::logical_or> {
  [[gnu::always_inline]] static bool run(std::same_as<bool> auto x, bool y) { return x | y; }
};
template <> struct Compute<Primitive::logical_not> {
  [[gnu::always_inline]] static bool run(std::same_as<bool> auto x) { return !x; }
};
template <> struct Compute<Primitive::select> {
  template <class T> [[gnu::always_inline]] static T run(bool mask, T x, T y) {
    if constexpr (std::same_as<T, bool>) return (mask & x) | (!mask & y);
    else return mask ? x : y;
  }
};
template <> struct Compute<Primitive::bit_and> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) { return x & y; }
};
template <> struct Compute<Primitive::bit_or> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) { return x | y; }
};
template <> struct Compute<Primitive::bit_xor> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) { return x ^ y; }
};

/// The count of a shift, modulo the bits of the type.
template <IntegerElement T> [[gnu::always_inline]] inline T shift_count(T y) {
  return y & static_cast<T>(sizeof(T) * 8 - 1);
}

template <> struct Compute<Primitive::shift_left> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) {
    return static_cast<T>(static_cast<WrappingOf<T>>(x) << shift_count(y));
  }
};
template <> struct Compute<Primitive::shift_right> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) { return x >> shift_count(y); }
};
template <> struct Compute<Primitive::shift_right_zero> {
  template <IntegerElement T> [[gnu::always_inline]] static T run(T x, T y) {
    return static_cast<T>(static_cast<WrappingOf<T>>(x) >> shift_count(y));
  }
};
template <> struct Compute<Primitive::reinterpret> {
  template <class T>
    requires FloatElement<T> || std::same_as<T, int32_t> || std::same_as<T, int64_t>
  [[gnu::always_inline]] static typename SameBits<T>::Type run(T x) {
    return std::bit_cast<typename SameBits<T>::Type>(x);
  }
};

/// The one primitive whose result type is not known from its operands.
template <> struct Compute<Primitive::convert> {
  template <class To, class From> [[gnu::always_inline]] static To to(From x) {
    if constexpr (std::same_as<To, bool>) {
      return x != From{0};
    } else if constexpr (FloatElement<From> && IntegerElement<To>) {
      // Both bounds are exact in From: one above the highest number, and the lowest one.
      constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
      constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
      const To inside = x >= lowest && x < above ? static_cast<To>(x) : To{0};
      return x >= above ? std::numeric_limits<To>::max() : x < lowest ? std::numeric_limits<To>::min() : inside;
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace rosin
