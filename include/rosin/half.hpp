// Half and BFloat: elements of Float16 and BFloat16 arrays as they lie in memory. Numbers are computed in float and
// rounded to nearest even when stored. Foreign memory of 16-bit floats is read without a conversion, e.g.
//   Array(std::span(reinterpret_cast<const Half*>(pointer), count), shape), x.to_vector<Half>(), x.item<BFloat>().bits
#pragma once

#include <bit>
#include <cstdint>

#include <rosin/dtype.hpp>

namespace rosin {

/// The bits of the nearest IEEE 754 binary16 number: 1 sign, 5 exponent, 10 fraction bits; and their value.
constexpr uint16_t half_bits(float value) noexcept {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (word >> 16) & 0x8000u;
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));  // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds beyond 65504
  if (magnitude < 0x38800000u) {
    // Below the smallest normal number: adding 0.5 leaves the fraction, rounded, in the last bits.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float half_value(uint16_t bits) noexcept {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  const uint32_t quiet = fraction != 0 ? 0x400000u : 0;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | quiet | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

/// The same for BFloat16, the upper half of a float: 1 sign, 8 exponent, 7 fraction bits.
constexpr uint16_t bfloat_bits(float value) noexcept {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const bool nan = (word & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = nan ? (word | 0x400000u) : word + 0x7fffu + ((word >> 16) & 1u);
  return static_cast<uint16_t>(rounded >> 16);
}

constexpr float bfloat_value(uint16_t bits) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// An element of a Float16 array: two bytes, read as float, written from float.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  constexpr explicit Half(float value) noexcept : bits(half_bits(value)) {}
  constexpr operator float() const noexcept { return half_value(bits); }
};

/// An element of a BFloat16 array: two bytes, read as float, written from float.
struct BFloat {
  uint16_t bits = 0;
  BFloat() = default;
  constexpr explicit BFloat(float value) noexcept : bits(bfloat_bits(value)) {}
  constexpr operator float() const noexcept { return bfloat_value(bits); }
};

template <> inline constexpr bool is_element<Half> = true;
template <> inline constexpr bool is_element<BFloat> = true;
template <> inline constexpr DType dtype_of<Half> = DType::Float16;
template <> inline constexpr DType dtype_of<BFloat> = DType::BFloat16;

}  // namespace rosin
