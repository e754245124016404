// Expected texts are what Julia prints (its manual and the documentation of eps, floatmin and floatmax).
#include "model/number_text.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace rosin {
namespace {

std::string plain(double value) { return float_text(value, Float64, false); }
std::string single(float value) { return float_text(static_cast<double>(value), Float32, false); }

TEST(NumberText, FloatsHaveAPointAndTheShortestDigits) {
  EXPECT_EQ(plain(1), "1.0");
  EXPECT_EQ(plain(0.5), "0.5");
  EXPECT_EQ(plain(-2.25), "-2.25");
  EXPECT_EQ(plain(0.1), "0.1");
  EXPECT_EQ(plain(3.141592653589793), "3.141592653589793");
  EXPECT_EQ(single(3.14159265f), "3.1415927");
  EXPECT_EQ(plain(0.0), "0.0");
  EXPECT_EQ(plain(-0.0), "-0.0");
}

TEST(NumberText, LargeAndSmallFloatsHaveAnExponent) {
  EXPECT_EQ(plain(1e-8), "1.0e-8");
  EXPECT_EQ(plain(0.0001), "0.0001");
  EXPECT_EQ(plain(0.00001), "1.0e-5");
  EXPECT_EQ(plain(100000), "100000.0");
  EXPECT_EQ(plain(999999), "999999.0");
  EXPECT_EQ(plain(1e6), "1.0e6");
  EXPECT_EQ(plain(1234567.5), "1.2345675e6");
  EXPECT_EQ(plain(2.220446049250313e-16), "2.220446049250313e-16");
  EXPECT_EQ(plain(1.7976931348623157e308), "1.7976931348623157e308");
  EXPECT_EQ(single(1.1920929e-7f), "1.1920929e-7");
}

TEST(NumberText, SpecialValuesAreNamed) {
  EXPECT_EQ(plain(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(plain(std::numeric_limits<double>::infinity()), "Inf");
  EXPECT_EQ(plain(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(NumberText, HalfPrecisionReadsBackInItsOwnType) {
  EXPECT_EQ(float_text(0.0999755859375, Float16, false), "0.1");
  EXPECT_EQ(float_text(65504, Float16, false), "6.55e4");
  EXPECT_EQ(float_text(0.0009765625, Float16, false), "0.000977");
  EXPECT_EQ(float_text(6.103515625e-05, Float16, false), "6.104e-5");
  EXPECT_EQ(float_text(1.0, BFloat16, false), "1.0");
}

TEST(NumberText, CompactFloatsHaveSixDigits) {
  EXPECT_EQ(float_text(3.141592653589793, Float64, true), "3.14159");
  EXPECT_EQ(float_text(0.1, Float64, true), "0.1");
  EXPECT_EQ(float_text(123456.789, Float64, true), "1.23457e5");
  EXPECT_EQ(float_text(0.9999999, Float64, true), "1.0");
}

TEST(NumberText, CountsAreGroupedAndBytesHaveUnits) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(1000), "1_000");
  EXPECT_EQ(grouped(1234567), "1_234_567");
  EXPECT_EQ(bytes_text(744), "744 bytes");
  EXPECT_EQ(bytes_text(769 * 4), "3.004 KiB");
  EXPECT_EQ(bytes_text(int64_t{6513090}), "6.211 MiB");
}

TEST(NumberText, SizesAreJoinedByTimes) {
  const int64_t sizes[] = {2, 5, 3};
  EXPECT_EQ(sizes_text(sizes, 3), "2×5×3");
  EXPECT_EQ(sizes_text(sizes, 1), "2-element");
  EXPECT_EQ(width_of("2×5"), 3u);
}

}  // namespace
}  // namespace rosin
