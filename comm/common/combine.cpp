// See combine.hpp. The loops are plain ones, which the compiler makes wide.
#include "common/combine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/describe.hpp"

namespace rosin::transport {
namespace {

/// The type in which sums and products of T wrap around: unsigned, and no smaller than int.
template <class T> struct Wrapping {
  using type = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;
};
template <> struct Wrapping<float> {
  using type = float;
};
template <> struct Wrapping<double> {
  using type = double;
};

template <class T> void add(const T* first, const T* next, T* all, uint64_t count) {
  using W = typename Wrapping<T>::type;
  for (uint64_t i = 0; i < count; ++i) all[i] = static_cast<T>(static_cast<W>(first[i]) + static_cast<W>(next[i]));
}

template <class T> void multiply(const T* first, const T* next, T* all, uint64_t count) {
  using W = typename Wrapping<T>::type;
  for (uint64_t i = 0; i < count; ++i) all[i] = static_cast<T>(static_cast<W>(first[i]) * static_cast<W>(next[i]));
}

template <class T> void least(const T* first, const T* next, T* all, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) all[i] = next[i] < first[i] || next[i] != next[i] ? next[i] : first[i];
}

template <class T> void greatest(const T* first, const T* next, T* all, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) all[i] = next[i] > first[i] || next[i] != next[i] ? next[i] : first[i];
}

/// all[i] = first[i] o next[i]; `all` may be `first`.
template <class T> void apply(int32_t operation, const T* first, const T* next, T* all, uint64_t count) {
  switch (operation) {
    case ROSIN_COMM_SUM: return add(first, next, all, count);
    case ROSIN_COMM_PRODUCT: return multiply(first, next, all, count);
    case ROSIN_COMM_MINIMUM: return least(first, next, all, count);
    default: return greatest(first, next, all, count);
  }
}

void combine_halves(int32_t operation, int32_t type, std::span<const void* const> sources, uint64_t count, void* out) {
  std::array<float, block_bytes / 2> all, next;
  widen(type, sources[0], all.data(), count);
  for (const void* source : sources.subspan(1)) {
    widen(type, source, next.data(), count);
    apply(operation, all.data(), next.data(), all.data(), count);
  }
  narrow(type, all.data(), out, count);
}

float from_float16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, rest = half & 0x7fffu;
  const uint32_t subnormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f);
  const uint32_t moved = (rest << 13) + (rest >= 0x7c00u ? 0x70000000u : 0x38000000u);  // infinities and NaN: further
  return std::bit_cast<float>((rest < 0x400u ? subnormal : moved) | sign);
}

uint16_t to_float16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  const uint32_t odd = rest >> 13 & 1u;
  const uint32_t normal = (rest - 0x38000000u + 0xfffu + odd) >> 13;
  // Below 2^-14 the sum with 0.5 rounds at the place of the last bit of a subnormal number.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  const uint32_t big = rest > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = rest < 0x38800000u ? small : normal;
  return static_cast<uint16_t>(sign | (rest >= 0x477ff000u ? big : finite));
}

uint16_t to_bfloat16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}

}  // namespace

void combine(int32_t operation, int32_t type, std::span<const void* const> sources, uint64_t count, void* out) {
  if (is_half(type)) return combine_halves(operation, type, sources, count, out);
  if (sources.size() == 1) {
    std::memcpy(out, sources[0], count * bytes_of(type));
    return;
  }
  combine_two(operation, type, sources[0], sources[1], out, count);
  for (const void* next : sources.subspan(2)) combine_into(operation, type, next, out, count);
}

void combine_all(int32_t operation, int32_t type, std::span<const void* const> sources, uint64_t bytes, char* to) {
  alignas(64) std::array<char, block_bytes> block;
  std::vector<const void*> from(sources.begin(), sources.end());
  const uint64_t element = bytes_of(type);
  const bool in_place = std::find(from.begin(), from.end(), to) != from.end();
  for (uint64_t at = 0; at < bytes; at += block_bytes) {
    const uint64_t now = std::min(block_bytes, bytes - at);
    combine(operation, type, from, now / element, in_place ? block.data() : to + at);
    if (in_place) std::memcpy(to + at, block.data(), now);
    for (const void*& place : from) place = static_cast<const char*>(place) + now;
  }
}

void combine_into(int32_t operation, int32_t type, const void* next, void* all, uint64_t count) {
  combine_two(operation, type, all, next, all, count);
}

void combine_two(int32_t operation, int32_t type, const void* first, const void* next, void* all, uint64_t count) {
  const auto with = [&](auto number) {
    using T = decltype(number);
    apply(operation, static_cast<const T*>(first), static_cast<const T*>(next), static_cast<T*>(all), count);
  };
  switch (type) {
    case ROSIN_COMM_UINT8: return with(uint8_t{});
    case ROSIN_COMM_INT8: return with(int8_t{});
    case ROSIN_COMM_INT16: return with(int16_t{});
    case ROSIN_COMM_UINT16: return with(uint16_t{});
    case ROSIN_COMM_INT32: return with(int32_t{});
    case ROSIN_COMM_UINT32: return with(uint32_t{});
    case ROSIN_COMM_INT64: return with(int64_t{});
    case ROSIN_COMM_UINT64: return with(uint64_t{});
    case ROSIN_COMM_FLOAT32: return with(float{});
    default: return with(double{});
  }
}

void widen(int32_t type, const void* from, float* to, uint64_t count) {
  const auto* halves = static_cast<const uint16_t*>(from);
  if (type == ROSIN_COMM_FLOAT16) {
    for (uint64_t i = 0; i < count; ++i) to[i] = from_float16(halves[i]);
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(halves[i]) << 16);
  }
}

void narrow(int32_t type, const float* from, void* to, uint64_t count) {
  auto* halves = static_cast<uint16_t*>(to);
  if (type == ROSIN_COMM_FLOAT16) {
    for (uint64_t i = 0; i < count; ++i) halves[i] = to_float16(from[i]);
  } else {
    for (uint64_t i = 0; i < count; ++i) halves[i] = to_bfloat16(from[i]);
  }
}

}  // namespace rosin::transport
