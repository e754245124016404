// Conversions: one template over pairs of element types.
#include "scalar/convert.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <rosin/half.hpp>

namespace rosin {
namespace {

struct ComplexFloat {
  float real, imaginary;
};
struct ComplexDouble {
  double real, imaginary;
};

/// Calls f with a value of the C++ type that stores `type`.
template <class F> void with_type(DType type, F&& f) {
  switch (type) {
    case DType::Bool: return f(bool{});
    case DType::UInt8: return f(uint8_t{});
    case DType::Int8: return f(int8_t{});
    case DType::Int16: return f(int16_t{});
    case DType::UInt16: return f(uint16_t{});
    case DType::Int32: return f(int32_t{});
    case DType::UInt32: return f(uint32_t{});
    case DType::Int64: return f(int64_t{});
    case DType::UInt64: return f(uint64_t{});
    case DType::Float16: return f(Half{});
    case DType::BFloat16: return f(BFloat{});
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    case DType::ComplexF32: return f(ComplexFloat{});
    case DType::ComplexF64: return f(ComplexDouble{});
  }
}

template <class T> constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
template <class T> constexpr bool is_complex_type = std::is_same_v<T, ComplexFloat> || std::is_same_v<T, ComplexDouble>;

/// A stored element as a number the language can convert.
template <class S> auto number(const S& source) {
  if constexpr (is_half<S>) return static_cast<float>(source);
  else if constexpr (is_complex_type<S>) return source.real;
  else return source;
}

template <class T, class N> T from_float_to_integer(N value) {
  if (value != value) return T(0);
  // Bounds are powers of two, exact in every float type.
  const N high = std::ldexp(N(1), std::numeric_limits<T>::digits);
  const N low = std::is_signed_v<T> ? -high : N(0);
  if (value >= high) return std::numeric_limits<T>::max();
  if (value <= low) return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
}

template <class T, class S> T element(S source) {
  if constexpr (is_complex_type<T>) {
    using Part = decltype(T{}.real);
    if constexpr (is_complex_type<S>) return {static_cast<Part>(source.real), static_cast<Part>(source.imaginary)};
    else return {element<Part>(source), Part(0)};
  } else {
    const auto value = number(source);
    if constexpr (std::is_same_v<T, bool>) return value != decltype(value)(0);
    else if constexpr (is_half<T>) return T(static_cast<float>(value));
    else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<std::remove_const_t<decltype(value)>>) {
      return from_float_to_integer<T>(value);
    } else return static_cast<T>(value);
  }
}

}  // namespace

void convert_elements(void* target, DType target_type, const void* source, DType source_type, int64_t count) {
  if (count == 0) return;
  if (target_type == source_type) {
    std::memmove(target, source, static_cast<size_t>(count) * size_of(target_type));
    return;
  }
  with_type(target_type, [&](auto t) {
    with_type(source_type, [&](auto s) {
      using T = decltype(t);
      using S = decltype(s);
      T* to = static_cast<T*>(target);
      const S* from = static_cast<const S*>(source);
      for (int64_t i = 0; i < count; ++i) to[i] = element<T>(from[i]);
    });
  });
}

DType storage_of(ScalarType type) noexcept {
  constexpr DType types[scalar_type_count] = {DType::Bool,   DType::Int32,   DType::UInt32, DType::Int64,
                                              DType::UInt64, DType::Float32, DType::Float64};
  return types[static_cast<int>(type)];
}

}  // namespace rosin
