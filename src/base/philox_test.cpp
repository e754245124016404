// Philox against the known answers published with it (Random123, kat_vectors).
#include "base/philox.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rosin::philox {
namespace {

TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(block({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(block({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UnitNumbersStayBelowOne) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_EQ(unit_float(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(unit_double(0xffffffff, 0xffffffff), 1.0 - 0x1p-53);
}

TEST(Philox, NumbersBelowABoundAreEquallyLikely) {
  Stream stream(7);
  constexpr uint32_t bound = 6;
  constexpr int draws = 60000;
  std::vector<int> seen(bound);
  for (int i = 0; i < draws; ++i) ++seen[stream.below(bound)];
  double chi_square = 0;
  for (const int count : seen) chi_square += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_square, 20.5);  // the 0.999 quantile with five degrees of freedom
}

}  // namespace
}  // namespace rosin::philox
