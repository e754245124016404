// Philox4x32-10, a random number generator without state: words = f(key, counter). Every device computes the same.
// Source: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rosin::philox {

using Words = std::array<uint32_t, 4>;

inline constexpr int rounds = 10;
/// What counter words are multiplied by in a round.
inline constexpr uint32_t first_factor = 0xD2511F53u, second_factor = 0xCD9E8D57u;
/// What the key's words grow by from round to round.
inline constexpr uint32_t low_step = 0x9E3779B9u, high_step = 0xBB67AE85u;

/// One round on four counter words under the key's words.
[[gnu::always_inline]] constexpr void mix(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t low,
                                          uint32_t high) noexcept {
  const uint64_t first = uint64_t{first_factor} * a;
  const uint64_t second = uint64_t{second_factor} * c;
  a = static_cast<uint32_t>(second >> 32) ^ b ^ low;
  c = static_cast<uint32_t>(first >> 32) ^ d ^ high;
  b = static_cast<uint32_t>(second);
  d = static_cast<uint32_t>(first);
}

/// All rounds on the counter words under the key (low word first).
constexpr Words block(Words counter, uint64_t key) noexcept {
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    mix(counter[0], counter[1], counter[2], counter[3], low, high);
    low += low_step;
    high += high_step;
  }
  return counter;
}

/// What a block is for: draws of arrays, and three ways to new keys. It is the counter's last word.
enum class Purpose : uint32_t { draw = 0, split = 1, derive = 2, thread = 3 };

/// Block number `index` of a key.
constexpr Words block_at(uint64_t key, uint64_t index, Purpose purpose = Purpose::draw) noexcept {
  return block({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, static_cast<uint32_t>(purpose)},
               key);
}

/// The first 64 bits of a block.
constexpr uint64_t bits_at(uint64_t key, uint64_t index, Purpose purpose) noexcept {
  const Words words = block_at(key, index, purpose);
  return words[0] | uint64_t{words[1]} << 32;
}

/// [0, 1) from 24 and from 53 bits.
[[gnu::always_inline]] constexpr float unit_float(uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
constexpr double unit_double(uint32_t low, uint32_t high) noexcept {
  return static_cast<double>((low | uint64_t{high} << 32) >> 11) * 0x1p-53;
}

/// The words of one key one after another, for what is drawn in order.
class Stream {
 public:
  constexpr explicit Stream(uint64_t key, uint64_t first_block = 0) noexcept : key_(key), block_(first_block) {}

  constexpr uint32_t next() noexcept {
    if (used_ == 4) {
      words_ = block_at(key_, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  /// In [0, bound), every number equally likely; bound > 0. Source: Lemire, Fast Random Integer Generation (2019).
  constexpr uint32_t below(uint32_t bound) noexcept {
    uint64_t product = uint64_t{next()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t unfair = (0u - bound) % bound;
      while (static_cast<uint32_t>(product) < unfair) product = uint64_t{next()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t key_;
  uint64_t block_;
  Words words_{};
  size_t used_ = 4;
};

}  // namespace rosin::philox
