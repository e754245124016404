// A fast 64-bit hash of words, for keys that are compared in full afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin {

/// Both halves of a product, folded into one word (as in wyhash).
inline uint64_t folded_product(uint64_t a, uint64_t b) noexcept {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Mixes one word into a running hash.
inline uint64_t mix(uint64_t hash, uint64_t word) noexcept {
  return folded_product(hash ^ word ^ 0x9E3779B97F4A7C15ull, 0xD6E8FEB86659FD93ull);
}

/// Two running hashes, two words a product: the products do not wait for one another.
inline uint64_t hash_words(const uint64_t* words, size_t count) noexcept {
  uint64_t first = 0x9E3779B97F4A7C15ull, second = 0xD6E8FEB86659FD93ull;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    first = folded_product(first ^ words[i], words[i + 1] ^ 0xA0761D6478BD642Full);
    second = folded_product(second ^ words[i + 2], words[i + 3] ^ 0xE7037ED1A0B428DBull);
  }
  for (; i < count; ++i) first = mix(first, words[i]);
  return mix(first, second);
}

}  // namespace rosin
