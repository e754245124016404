// Conversions: one template over pairs of element types, but for the 16-bit floats, which go through float.
#include "scalar/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "scalar/half_strips.hpp"

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
    case DType::Float16:
    case DType::BFloat16: return;  // never asked for
    case DType::Float32: return f(float{});
    case DType::Float64: return f(double{});
    case DType::ComplexF32: return f(ComplexFloat{});
    case DType::ComplexF64: return f(ComplexDouble{});
  }
}

template <class T> constexpr bool is_complex_type = std::is_same_v<T, ComplexFloat> || std::is_same_v<T, ComplexDouble>;

/// A stored element as a number the language can convert.
template <class S> auto number(const S& source) {
  if constexpr (is_complex_type<S>) return source.real;
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
    else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<std::remove_const_t<decltype(value)>>) {
      return from_float_to_integer<T>(value);
    } else return static_cast<T>(value);
  }
}

/// Between all types but the 16-bit floats.
void convert_each(void* target, DType target_type, const void* source, DType source_type, int64_t count) {
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

bool is_short_float(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

void widen(float* out, const void* x, DType type, int64_t count) {
  if (type == DType::Float16) half_strips().half_to_float(out, static_cast<const Half*>(x), count);
  else half_strips().bfloat_to_float(out, static_cast<const BFloat*>(x), count);
}

void narrow(void* out, DType type, const float* x, int64_t count) {
  if (type == DType::Float16) half_strips().float_to_half(static_cast<Half*>(out), x, count);
  else half_strips().float_to_bfloat(static_cast<BFloat*>(out), x, count);
}

/// Where one of the types is a 16-bit float, and the other not Float32.
void convert_through_float(void* target, DType target_type, const void* source, DType source_type, int64_t count) {
  constexpr int64_t block = 256;
  float values[block];
  auto* to = static_cast<unsigned char*>(target);
  const auto* from = static_cast<const unsigned char*>(source);
  for (int64_t done = 0; done < count; done += block) {
    const int64_t here = std::min(block, count - done);
    convert_elements(values, DType::Float32, from, source_type, here);
    convert_elements(to, target_type, values, DType::Float32, here);
    to += static_cast<size_t>(here) * size_of(target_type);
    from += static_cast<size_t>(here) * size_of(source_type);
  }
}

}  // namespace

void convert_elements(void* target, DType target_type, const void* source, DType source_type, int64_t count) {
  if (count == 0) return;
  if (target_type == source_type) {
    std::memmove(target, source, static_cast<size_t>(count) * size_of(target_type));
  } else if (!is_short_float(target_type) && !is_short_float(source_type)) {
    convert_each(target, target_type, source, source_type, count);
  } else if (target_type == DType::Float32) {
    widen(static_cast<float*>(target), source, source_type, count);
  } else if (source_type == DType::Float32) {
    narrow(target, target_type, static_cast<const float*>(source), count);
  } else {
    convert_through_float(target, target_type, source, source_type, count);
  }
}

DType storage_of(ScalarType type) noexcept {
  constexpr DType types[scalar_type_count] = {DType::Bool,   DType::Int32,   DType::UInt32, DType::Int64,
                                              DType::UInt64, DType::Float32, DType::Float64};
  return types[static_cast<int>(type)];
}

}  // namespace rosin
