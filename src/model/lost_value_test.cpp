// Which values another type holds, against what the processor and NumPy say of single ones.
#include "model/lost_value.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <rosin/create.hpp>

namespace rosin {
namespace {

template <class T> std::string lost(const std::vector<T>& values, DType to) {
  return lost_value(values.data(), dtype_of<T>, to, static_cast<int64_t>(values.size())).value_or("");
}

TEST(LostValue, IntegersStayWhatTheyAre) {
  EXPECT_EQ(lost<int64_t>({-128, 127}, Int8), "");
  EXPECT_EQ(lost<int64_t>({1, 128}, Int8), "128");
  EXPECT_EQ(lost<int32_t>({-1}, UInt64), "-1");
  EXPECT_EQ(lost<uint64_t>({1u, std::numeric_limits<uint64_t>::max()}, Int64), "18446744073709551615");
  EXPECT_EQ(lost<uint64_t>({uint64_t{1} << 63}, Float32), "");  // a power of two
  EXPECT_EQ(lost<int64_t>({(int64_t{1} << 53) + 1}, Float64), "9007199254740993");
  EXPECT_EQ(lost<int64_t>({(int64_t{1} << 53) + 2}, Float64), "");
  EXPECT_EQ(lost<int64_t>({std::numeric_limits<int64_t>::max()}, Float64), "9223372036854775807");
  EXPECT_EQ(lost<int64_t>({std::numeric_limits<int64_t>::min()}, Float32), "");
  EXPECT_EQ(lost<int32_t>({(1 << 24) + 1}, Float32), "16777217");
  EXPECT_EQ(lost<int32_t>({2049}, Float16), "2049");
  EXPECT_EQ(lost<int32_t>({0, 1}, Bool), "");
  EXPECT_EQ(lost<int32_t>({2}, Bool), "2");
}

TEST(LostValue, FloatsAreRoundedAmongThemselvesAlone) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(lost<float>({0.1f, infinite, -infinite, std::numeric_limits<float>::quiet_NaN()}, Float16), "");
  EXPECT_EQ(lost<float>({65504.0f, 65519.0f}, Float16), "");
  EXPECT_EQ(lost<float>({65520.0f}, Float16), "65520");
  EXPECT_EQ(lost<double>({-1e39}, Float32), "-1e+39");
  EXPECT_EQ(lost<double>({1e39}, Float64), "");
  EXPECT_EQ(lost<float>({-0.0f, 3.0f, -128.0f}, Int8), "");
  EXPECT_EQ(lost<float>({0.5f}, Int8), "0.5");
  EXPECT_EQ(lost<float>({9223372036854775808.0f}, Int64), "9.22337204e+18");
  EXPECT_EQ(lost<float>({9223372036854775808.0f}, UInt64), "");
  EXPECT_EQ(lost<float>({std::numeric_limits<float>::quiet_NaN()}, Int32), "nan");
  EXPECT_EQ(lost<float>({1.0f, 2.0f}, Bool), "2");
}

TEST(LostValue, TheFirstOfManyIsToldWhicheverThreadFindsIt) {
  std::vector<double> values(1 << 20, 1.0);
  EXPECT_EQ(lost(values, Float32), "");
  values.back() = 1e300;
  EXPECT_EQ(lost(values, Float32), "1e+300");
  values[700000] = 1e200;
  values[123457] = 1e100;
  for (int run = 0; run < 20; ++run) EXPECT_EQ(lost(values, Float32), "1e+100");
}

}  // namespace
}  // namespace rosin
