// A fast 64-bit hash of words, for keys that are compared in full afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin {

/// Mixes one word into a running hash (multiply and fold, as in wyhash).
inline uint64_t mix(uint64_t hash, uint64_t word) noexcept {
  const unsigned __int128 product =
      static_cast<unsigned __int128>(hash ^ word ^ 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_words(const uint64_t* words, size_t count, uint64_t hash = 0) noexcept {
  for (size_t i = 0; i < count; ++i) hash = mix(hash, words[i]);
  return hash;
}

}  // namespace rosin
