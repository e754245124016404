// The C++ types of scalars in registers and of elements in memory.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <rosin/backend.h>

namespace rosin::reference {

/// A Bool in registers and in memory: 0 or 1. No other scalar has this type.
using Bool = uint8_t;

template <class T>
concept Float = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept Integer =
    std::same_as<T, int32_t> || std::same_as<T, uint32_t> || std::same_as<T, int64_t> || std::same_as<T, uint64_t>;
template <class T>
concept Number = Float<T> || Integer<T>;

template <class T> struct TypeTag {
  using Type = T;
};

/// f(TypeTag<T>) with the type of a rosin_scalar_type; `nothing` for other numbers.
template <class Result, class F> Result with_scalar(int type, Result nothing, F&& f) {
  switch (type) {
    case ROSIN_SCALAR_BOOL: return f(TypeTag<Bool>{});
    case ROSIN_SCALAR_INT32: return f(TypeTag<int32_t>{});
    case ROSIN_SCALAR_UINT32: return f(TypeTag<uint32_t>{});
    case ROSIN_SCALAR_INT64: return f(TypeTag<int64_t>{});
    case ROSIN_SCALAR_UINT64: return f(TypeTag<uint64_t>{});
    case ROSIN_SCALAR_FLOAT32: return f(TypeTag<float>{});
    case ROSIN_SCALAR_FLOAT64: return f(TypeTag<double>{});
    default: return nothing;
  }
}

/// 16-bit floats: `Half` is binary16, `Brain` the upper half of a binary32.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

inline Half narrow_half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t half = 0x7e00u;
  if (magnitude < 0x38800000u) {
    // Subnormal numbers are multiples of 2^-24, and their bits count them.
    half = static_cast<uint32_t>(std::nearbyint(std::fabs(x) * 0x1p24f));
  } else if (magnitude <= 0x7f800000u) {
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    half = half < 0x7c00u ? half : 0x7c00u;
  }
  return {static_cast<uint16_t>(sign | half)};
}

inline float widen(Half x) {
  const uint32_t sign = (x.bits & 0x8000u) << 16, magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // As a binary32 these bits are the number times 2^-112, subnormal numbers too.
  const float number = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(number));
}

inline Brain narrow_brain(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

inline float widen(Brain x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

/// An element that is stored as S and computed in T.
template <class S, class T> struct Element {
  using Stored = S;
  using Scalar = T;
  static T widened(S x) {
    if constexpr (std::same_as<T, Bool>) return x != 0;
    else if constexpr (std::same_as<S, Half> || std::same_as<S, Brain>) return widen(x);
    else return static_cast<T>(x);
  }
  static S narrowed(T x) {
    if constexpr (std::same_as<T, Bool>) return x != 0;
    else if constexpr (std::same_as<S, Half>) return narrow_half(x);
    else if constexpr (std::same_as<S, Brain>) return narrow_brain(x);
    else return static_cast<S>(x);
  }
};

/// f(Element) of a rosin_type; `nothing` for types that are not loaded.
template <class Result, class F> Result with_element(int64_t type, Result nothing, F&& f) {
  switch (type) {
    case ROSIN_BOOL: return f(Element<Bool, Bool>{});
    case ROSIN_UINT8: return f(Element<uint8_t, int32_t>{});
    case ROSIN_INT8: return f(Element<int8_t, int32_t>{});
    case ROSIN_INT16: return f(Element<int16_t, int32_t>{});
    case ROSIN_UINT16: return f(Element<uint16_t, int32_t>{});
    case ROSIN_INT32: return f(Element<int32_t, int32_t>{});
    case ROSIN_UINT32: return f(Element<uint32_t, uint32_t>{});
    case ROSIN_INT64: return f(Element<int64_t, int64_t>{});
    case ROSIN_UINT64: return f(Element<uint64_t, uint64_t>{});
    case ROSIN_FLOAT16: return f(Element<Half, float>{});
    case ROSIN_BFLOAT16: return f(Element<Brain, float>{});
    case ROSIN_FLOAT32: return f(Element<float, float>{});
    case ROSIN_FLOAT64: return f(Element<double, double>{});
    default: return nothing;
  }
}

/// The rosin_scalar_type of T.
template <class T> constexpr int scalar_of() {
  if constexpr (std::same_as<T, Bool>) return ROSIN_SCALAR_BOOL;
  else if constexpr (std::same_as<T, int32_t>) return ROSIN_SCALAR_INT32;
  else if constexpr (std::same_as<T, uint32_t>) return ROSIN_SCALAR_UINT32;
  else if constexpr (std::same_as<T, int64_t>) return ROSIN_SCALAR_INT64;
  else if constexpr (std::same_as<T, uint64_t>) return ROSIN_SCALAR_UINT64;
  else if constexpr (std::same_as<T, float>) return ROSIN_SCALAR_FLOAT32;
  else return ROSIN_SCALAR_FLOAT64;
}

/// The rosin_scalar_type in which elements of a rosin_type are computed; -1 where there is none.
inline int scalar_of_element(int64_t type) {
  return with_element(type, -1, []<class E>(E) { return scalar_of<typename E::Scalar>(); });
}

inline size_t scalar_bytes(int type) {
  return with_scalar(type, size_t{0}, []<class Tag>(Tag) { return sizeof(typename Tag::Type); });
}

}  // namespace rosin::reference
