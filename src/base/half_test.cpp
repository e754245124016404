// The 16-bit floats against the compiler's own binary16 (all 65536 values) and against bit patterns of the formats.
#include <rosin/half.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/half_testing.hpp"

namespace rosin {
namespace {

TEST(Half, AllValuesReadAsTheCompilersBinarySixteen) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto word = static_cast<uint16_t>(bits);
    CompilersHalf expected;
    std::memcpy(&expected, &word, 2);
    const float value = half_value(word), wanted = static_cast<float>(expected);
    ASSERT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted))) << bits;
    if (!std::isnan(wanted)) {
      ASSERT_EQ(half_bits(value), word);
    }
  }
}

TEST(Half, RoundsAsTheCompilersBinarySixteen) {
  for (uint64_t step = 0; step < 0x100000000u; step += 40503) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(step));
    if (std::isnan(value)) continue;
    const auto expected = static_cast<CompilersHalf>(value);
    uint16_t word;
    std::memcpy(&word, &expected, 2);
    ASSERT_EQ(half_bits(value), word) << value;
  }
}

TEST(Half, KeepsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(half_value(half_bits(nan))));
  EXPECT_TRUE(std::isnan(bfloat_value(bfloat_bits(nan))));
}

TEST(Half, ShortFloatsRoundToNearestEven) {
  EXPECT_EQ(bfloat_bits(1.0f), 0x3f80);
  EXPECT_EQ(bfloat_bits(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie, to even
  EXPECT_EQ(bfloat_bits(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(bfloat_bits(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(bfloat_bits(std::numeric_limits<float>::infinity()), 0x7f80);
}

}  // namespace
}  // namespace rosin
