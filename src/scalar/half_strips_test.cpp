// Strips of 16-bit floats bit by bit: every pattern, and floats around every place where rounding turns.
#include "scalar/half_strips.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half_testing.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

constexpr InstructionSet sets[] = {InstructionSet::baseline, InstructionSet::wide, InstructionSet::widest};
constexpr int64_t lengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 257};

template <class F> void for_sets(F&& f) {
  for (const InstructionSet set : sets) {
    if (set <= best_instruction_set()) f(half_strips(set));
  }
}

/// All 65536 patterns: numbers, subnormals, infinities, quiet and signalling NaNs.
template <class T> std::vector<T> all_patterns() {
  std::vector<T> elements(0x10000);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = std::bit_cast<T>(static_cast<uint16_t>(i));
  return elements;
}

/// Floats whose upper halves take every value, with lower halves where rounding turns.
std::vector<float> floats_around_ties() {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower :
         {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  return values;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class To, class From, class Strip> void expect_as_elements(Strip strip, const std::vector<From>& x) {
  std::vector<To> got(x.size()), wanted;
  for (const From value : x) wanted.push_back(To(value));
  strip(got.data(), x.data(), static_cast<int64_t>(x.size()));
  EXPECT_TRUE(same_bits(got, wanted));
}

TEST(HalfStrips, EveryPatternIsReadAsByElements) {
  for_sets([](const HalfStrips& strips) {
    expect_as_elements<float>(strips.half_to_float, all_patterns<Half>());
    expect_as_elements<float>(strips.bfloat_to_float, all_patterns<BFloat>());
  });
}

TEST(HalfStrips, FloatsAreRoundedAsByElements) {
  const std::vector<float> x = floats_around_ties();
  for_sets([&](const HalfStrips& strips) {
    expect_as_elements<Half>(strips.float_to_half, x);
    expect_as_elements<BFloat>(strips.float_to_bfloat, x);
  });
}

/// The compiler's own binary16, which is not ours.
TEST(HalfStrips, NumbersAreThoseOfTheCompiler) {
  for (const float value : floats_around_ties()) {
    if (std::isnan(value)) continue;
    Half got[8];
    const float x[8] = {value, value, value, value, value, value, value, value};
    half_strips().float_to_half(got, x, 8);
    ASSERT_EQ(got[7].bits, std::bit_cast<uint16_t>(static_cast<CompilersHalf>(value))) << value;
  }
}

TEST(HalfStrips, AnyLengthLeavesWhatIsBehind) {
  const std::vector<float> x(300, 1.5F);
  for_sets([&](const HalfStrips& strips) {
    for (const int64_t length : lengths) {
      std::vector<Half> out(300, Half(-2.0F));
      strips.float_to_half(out.data(), x.data() + 1, length);
      EXPECT_EQ(std::count_if(out.begin(), out.end(), [](Half h) { return h == 1.5F; }), length);
      std::vector<float> back(300, -2.0F);
      strips.half_to_float(back.data(), out.data(), length);
      EXPECT_EQ(std::count(back.begin(), back.end(), 1.5F), length);
    }
  });
}

TEST(HalfStrips, OtherTypesGoThroughFloat) {
  const std::vector<Half> x = {Half(1.5F), Half(-3.75F), Half(0.0F), Half(65504.0F), Half(NAN)};
  int32_t integers[5];
  convert_elements(integers, Int32, x.data(), Float16, 5);
  EXPECT_TRUE(std::ranges::equal(integers, std::vector<int32_t>{1, -3, 0, 65504, 0}));
  double pairs[10];
  convert_elements(pairs, ComplexF64, x.data(), Float16, 4);
  EXPECT_EQ(pairs[2], -3.75);
  EXPECT_EQ(pairs[3], 0.0);
  bool truths[5];
  convert_elements(truths, Bool, x.data(), Float16, 5);
  EXPECT_TRUE(std::ranges::equal(truths, std::vector<bool>{true, true, false, true, true}));
  std::vector<int64_t> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i);
  std::vector<BFloat> rounded(many.size());
  convert_elements(rounded.data(), BFloat16, many.data(), Int64, 1000);
  for (size_t i = 0; i < many.size(); ++i) ASSERT_EQ(rounded[i].bits, bfloat_bits(static_cast<float>(i)));
}

}  // namespace
}  // namespace rosin
