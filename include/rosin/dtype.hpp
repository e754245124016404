// Element types of arrays.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rosin/export.hpp>

namespace rosin {

/// Element type of an Array. All compute; what each op gives for each type stands in docs/types.md.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  UInt16,
  Int32,
  UInt32,
  Int64,
  UInt64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  ComplexF32,
  ComplexF64
};

inline constexpr DType Bool = DType::Bool;
inline constexpr DType UInt8 = DType::UInt8;
inline constexpr DType Int8 = DType::Int8;
inline constexpr DType Int16 = DType::Int16;
inline constexpr DType UInt16 = DType::UInt16;
inline constexpr DType Int32 = DType::Int32;
inline constexpr DType UInt32 = DType::UInt32;
inline constexpr DType Int64 = DType::Int64;
inline constexpr DType UInt64 = DType::UInt64;
inline constexpr DType Float16 = DType::Float16;
inline constexpr DType BFloat16 = DType::BFloat16;
inline constexpr DType Float32 = DType::Float32;
inline constexpr DType Float64 = DType::Float64;
inline constexpr DType ComplexF32 = DType::ComplexF32;
inline constexpr DType ComplexF64 = DType::ComplexF64;

inline constexpr int dtype_count = 15;

/// Bytes of one element.
constexpr size_t size_of(DType type) noexcept {
  constexpr uint8_t sizes[dtype_count] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(type)];
}

/// Float16, BFloat16, Float32, Float64.
constexpr bool is_float(DType type) noexcept { return type >= DType::Float16 && type <= DType::Float64; }
/// ComplexF32, ComplexF64.
constexpr bool is_complex(DType type) noexcept { return type >= DType::ComplexF32; }
/// The type of the two parts of a complex number; other types have one part, themselves.
constexpr DType part_type(DType type) noexcept {
  if (type == DType::ComplexF32) return DType::Float32;
  return type == DType::ComplexF64 ? DType::Float64 : type;
}
/// Signed or unsigned integers, not Bool.
constexpr bool is_integer(DType type) noexcept { return type >= DType::UInt8 && type <= DType::UInt64; }

/// Name as printed, e.g. "Float32".
ROSIN_API const char* to_string(DType type) noexcept;

/// The C++ type of an element, e.g. dtype_of<float> is Float32. (Half and BFloat, of 16 bits: rosin/half.hpp.)
template <class T> inline constexpr bool is_element = false;
template <class T> inline constexpr DType dtype_of = DType::Float32;

template <> inline constexpr bool is_element<bool> = true;
template <> inline constexpr bool is_element<uint8_t> = true;
template <> inline constexpr bool is_element<int8_t> = true;
template <> inline constexpr bool is_element<int16_t> = true;
template <> inline constexpr bool is_element<uint16_t> = true;
template <> inline constexpr bool is_element<int32_t> = true;
template <> inline constexpr bool is_element<uint32_t> = true;
template <> inline constexpr bool is_element<int64_t> = true;
template <> inline constexpr bool is_element<uint64_t> = true;
template <> inline constexpr bool is_element<float> = true;
template <> inline constexpr bool is_element<double> = true;

template <> inline constexpr DType dtype_of<bool> = DType::Bool;
template <> inline constexpr DType dtype_of<uint8_t> = DType::UInt8;
template <> inline constexpr DType dtype_of<int8_t> = DType::Int8;
template <> inline constexpr DType dtype_of<int16_t> = DType::Int16;
template <> inline constexpr DType dtype_of<uint16_t> = DType::UInt16;
template <> inline constexpr DType dtype_of<int32_t> = DType::Int32;
template <> inline constexpr DType dtype_of<uint32_t> = DType::UInt32;
template <> inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <> inline constexpr DType dtype_of<uint64_t> = DType::UInt64;
template <> inline constexpr DType dtype_of<float> = DType::Float32;
template <> inline constexpr DType dtype_of<double> = DType::Float64;

}  // namespace rosin
