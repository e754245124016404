// argmax and argmin along lines of every kind, short and long ones, beside each other and one after the other, against
// a search written out here: the first of equal elements, the first NaN before all.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr DType placed_types[] = {Bool, UInt8, Int8, Int32, Int64, Float16, BFloat16, Float32, Float64};

/// Few different values, so that many are equal; every ninth line has NaN in two places.
std::vector<double> drawn(int64_t inner, int64_t size, int64_t outer, bool floats) {
  std::vector<double> values;
  for (int64_t i = 0; i < inner * size * outer; ++i) {
    const int64_t place = i / inner % size, line = i % inner + i / (inner * size) * inner;
    const bool nan = floats && line % 9 == 4 && (place == size / 2 || place == size - 1);
    values.push_back(nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(i * 7919 % 31 - 7));
  }
  return values;
}

int64_t searched(const std::vector<double>& values, int64_t inner, int64_t size, int64_t line, bool largest) {
  const auto at = [&](int64_t j) {
    return values[static_cast<size_t>(line / inner * inner * size + j * inner + line % inner)];
  };
  int64_t best = 0;
  for (int64_t j = 1; j < size && !std::isnan(at(best)); ++j) {
    if (std::isnan(at(j)) || (largest ? at(j) > at(best) : at(j) < at(best))) best = j;
  }
  return best;
}

void check(DType type, int64_t inner, int64_t size, int64_t outer) {
  const Array x = cast(Array(drawn(inner, size, outer, is_float(type)), {inner, size, outer}), type);
  const std::vector<double> held = cast(x, Float64).to_vector<double>();
  for (const bool largest : {true, false}) {
    const std::vector<int> places = (largest ? argmax(x, 1) : argmin(x, 1)).to_vector<int>();
    for (int64_t line = 0; line < inner * outer; ++line) {
      ASSERT_EQ(places[static_cast<size_t>(line)], searched(held, inner, size, line, largest))
          << to_string(type) << " line " << line << " of " << inner << " x " << size << " x " << outer;
    }
  }
}

TEST(PlacesOfExtremes, AreTheFirstOfTheBest) {
  for (const DType type : placed_types) {
    for (const int64_t size : {1, 2, 3, 10, 16, 63, 64, 65, 100, 1000}) {
      for (const int64_t outer : {1, 5, 64, 130}) check(type, 1, size, outer);
      check(type, 3, size, 11);
      check(type, 70, size, 2);
    }
  }
  check(Float32, 1, 10, 20001);
}

}  // namespace
}  // namespace rosin
