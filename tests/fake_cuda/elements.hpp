// Elements of arrays, and operands as units that multiply take them, for stand-ins of libraries.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fake {

/// Rounds to `kept` bits behind the leading one, to nearest even; numbers below 2^least keep fewer.
inline double rounded(double value, int kept, int least) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double unit = std::ldexp(1.0, exponent - kept);
  return std::nearbyint(value / unit) * unit;
}

inline double as_half(double value) {
  const double kept = rounded(value, 10, -14);
  return std::fabs(kept) > 65504 ? std::copysign(INFINITY, kept) : kept;
}

inline double as_bfloat(double value) { return static_cast<float>(rounded(value, 7, -126)); }

inline double half_from(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

inline uint16_t half_bits(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7e00;
  const double size = std::fabs(as_half(value));
  if (std::isinf(size)) return static_cast<uint16_t>(sign | 0x7c00);
  if (size < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(size, 24)));
  const int exponent = std::ilogb(size);
  const int fraction = static_cast<int>(std::ldexp(size, 10 - exponent)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

inline double as_tf32(double value) { return rounded(value, 10, -126); }

inline uint16_t bfloat_bits(double value) {
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(as_bfloat(value))) >> 16);
}

enum class Element { half, bfloat, single, wide };

inline uint64_t bytes_of(Element type) { return type == Element::wide ? 8 : type == Element::single ? 4 : 2; }

template <class T> T loaded(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

/// Element number `at` behind the address.
inline double read_element(Element type, uint64_t start, int64_t at) {
  const uint64_t address = start + static_cast<uint64_t>(at) * bytes_of(type);
  switch (type) {
    case Element::wide: return loaded<double>(address);
    case Element::half: return half_from(loaded<uint16_t>(address));
    case Element::bfloat: return std::bit_cast<float>(static_cast<uint32_t>(loaded<uint16_t>(address)) << 16);
    default: return loaded<float>(address);
  }
}

inline void write_element(Element type, uint64_t start, int64_t at, double value) {
  auto* to = reinterpret_cast<void*>(start + static_cast<uint64_t>(at) * bytes_of(type));
  const auto put = [&](auto element) { std::memcpy(to, &element, sizeof element); };
  switch (type) {
    case Element::wide: return put(value);
    case Element::half: return put(half_bits(value));
    case Element::bfloat: return put(bfloat_bits(value));
    default: return put(static_cast<float>(value));
  }
}

}  // namespace fake
