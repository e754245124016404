// Draws that are made many at a time, against one block of the generator at a time.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "base/philox.hpp"

namespace rosin {
namespace {

constexpr uint64_t key = 0x123456789abcdef, counter = 0xfffffffd;  // counters pass 32 bits
constexpr int64_t counts[] = {0, 1, 2, 15, 16, 17, 31, 33, 1000, 16384, 16385, 70001};

Rng generator() { return Rng::restored(key, counter); }

/// Two words of element i where a block holds two.
uint64_t bits_of_element(int64_t i) {
  const philox::Words words = philox::block_at(key, counter + static_cast<uint64_t>(i / 2));
  const size_t first = i % 2 == 0 ? 0 : 2;
  return words[first] | uint64_t{words[first + 1]} << 32;
}

TEST(Draws, DoublesAndFloatsOfEachBlock) {
  for (const int64_t count : counts) {
    Rng rng = generator();
    const auto doubles = uniform(rng, {count}, 0, 1, Float64).to_vector<double>();
    rng = generator();
    const auto floats = uniform(rng, {count}, 0, 1, Float32).to_vector<float>();
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(doubles[at], static_cast<double>(bits_of_element(i) >> 11) * 0x1p-53) << count << ' ' << i;
      const philox::Words words = philox::block_at(key, counter + static_cast<uint64_t>(i / 4));
      ASSERT_EQ(floats[at], static_cast<float>(words[at % 4] >> 8) * 0x1p-24f) << count << ' ' << i;
    }
  }
}

/// The upper half of bits * (high - low), digit by digit.
int64_t integer_of(uint64_t bits, int64_t low, uint64_t range) {
  uint64_t carry = 0, result = 0;
  for (int digit = 0; digit < 64; ++digit) {  // range times each bit, lowest first
    const bool set = (bits >> digit & 1) != 0;
    const uint64_t sum = result + (set ? range : 0);
    carry = sum < result ? 1 : 0;
    result = sum >> 1 | carry << 63;
  }
  return static_cast<int64_t>(static_cast<uint64_t>(low) + result);
}

TEST(Draws, IntegersOfEachBlock) {
  struct Range {
    int64_t low, high;
  };
  for (const Range range : {Range{0, 1}, Range{-3, 4}, Range{0, 1000}, Range{-2147483648, 2147483647},
                            Range{-5000000000000, 7000000000000}}) {
    for (const int64_t count : counts) {
      Rng rng = generator();
      const auto drawn = randint(rng, range.low, range.high, {count}).to_vector<int64_t>();
      for (int64_t i = 0; i < count; ++i) {
        const auto wanted = integer_of(bits_of_element(i), range.low, static_cast<uint64_t>(range.high - range.low));
        ASSERT_EQ(drawn[static_cast<size_t>(i)], wanted) << range.low << ' ' << count << ' ' << i;
      }
    }
  }
}

TEST(Draws, AnyNumberOfThreadsGivesTheSameBits) {
  const auto all = [] {
    Rng rng = generator();
    return std::vector{uniform(rng, {70001}, 0, 1, Float64).to_vector<double>(),
                       normal(rng, {70001}, 0, 1, Float32).to_vector<double>(),
                       randint(rng, 0, 77, {70001}).to_vector<double>()};
  };
  set_num_threads(1);
  const auto wanted = all();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(all(), wanted) << threads << " threads";
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace rosin
