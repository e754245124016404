// Sorting and selecting, by places, against std::stable_sort with the order written out here: NaN after every number,
// equal elements by their places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

constexpr DType sorted_types[] = {UInt8, Int8,   Int16,   UInt16,   Int32,   UInt32,
                                  Int64, UInt64, Float16, BFloat16, Float32, Float64};

enum class Values { few, many, ascending, descending, special };
constexpr Values all_values[] = {Values::few, Values::many, Values::ascending, Values::descending, Values::special};

/// Numbers that every type holds, but for the special ones.
std::vector<double> drawn(int64_t count, Values which) {
  const double special[] = {
      std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, 1.5, std::numeric_limits<double>::infinity(), -1.5,
      -std::numeric_limits<double>::infinity()};
  std::vector<double> values;
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto number = static_cast<int64_t>(state >> 40);
    if (which == Values::few) values.push_back(static_cast<double>(number % 3));
    if (which == Values::many) values.push_back(static_cast<double>(number % 127));
    if (which == Values::ascending) values.push_back(static_cast<double>(i * 120 / count));
    if (which == Values::descending) values.push_back(static_cast<double>((count - i) * 120 / count));
    if (which == Values::special) values.push_back(special[number % 7]);
  }
  return values;
}

bool before(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

std::vector<int32_t> sorted_places(const std::vector<double>& line, bool descending) {
  std::vector<int32_t> places(line.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int32_t a, int32_t b) {
    const double x = line[static_cast<size_t>(a)], y = line[static_cast<size_t>(b)];
    return descending ? before(y, x) : before(x, y);
  });
  return places;
}

void expect_sorted(int64_t count, Values which, DType type) {
  const std::vector<double> values = drawn(count, which);
  const Array x = cast(Array(values, {count}), type);
  for (const bool descending : {false, true}) {
    std::vector<int32_t> wanted = sorted_places(values, descending);
    const std::string about = to_string(type) + std::string(", elements ") + std::to_string(count);
    EXPECT_EQ(argsort(x, 0, descending).to_vector<int32_t>(), wanted) << about;
    for (const int64_t k : {int64_t{1}, int64_t{3}, int64_t{16}, int64_t{17}, count / 5, count / 2, count}) {
      if (k < 1 || k > count) continue;
      const std::vector<int32_t> first(wanted.begin(), wanted.begin() + k);
      EXPECT_EQ(topk(x, k, 0, descending).indices.to_vector<int32_t>(), first) << about << ", k " << k;
    }
  }
}

TEST(SortedPlaces, OfAllTypesSizesAndValues) {
  for (const DType type : sorted_types) {
    for (const Values which : all_values) {
      if (which == Values::special && !is_float(type)) continue;
      for (const int64_t count : {1, 2, 7, 127, 255, 256, 257, 1031, 5003}) expect_sorted(count, which, type);
    }
  }
}

TEST(SortedPlaces, NumbersThatNeedAllBits) {
  const std::vector<int64_t> longs = {std::numeric_limits<int64_t>::max(),
                                      -1,
                                      0,
                                      std::numeric_limits<int64_t>::min(),
                                      (int64_t{1} << 53) + 1,
                                      int64_t{1} << 53};
  EXPECT_EQ(argsort(Array(longs, {6})).to_vector<int32_t>(), (std::vector<int32_t>{3, 1, 2, 5, 4, 0}));
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 300; ++i) many.push_back((int64_t{1} << 53) + (i * 37 % 300));
  const std::vector<int64_t> sorted = sort(Array(many, {300})).to_vector<int64_t>();
  for (size_t i = 0; i < 300; ++i) ASSERT_EQ(sorted[i], (int64_t{1} << 53) + static_cast<int64_t>(i));
}

TEST(SortedPlaces, LinesOfEveryDimAndAnyThreads) {
  const std::vector<double> values = drawn(int64_t{31} * 307 * 3, Values::many);
  for (const DType type : {Float16, Float32, Int64}) {
    const Array x = reshape(cast(Array(values, {31 * 307 * 3}), type), {31, 307, 3});
    set_num_threads(1);
    const auto sorted = sort(x, 1).to_vector<double>();
    const auto top = topk(x, 5, 1).values.to_vector<double>();
    for (int64_t inner = 0; inner < 31; ++inner) {
      for (int64_t outer = 0; outer < 3; ++outer) {
        std::vector<double> line;
        for (int64_t j = 0; j < 307; ++j) line.push_back(values[static_cast<size_t>(inner + 31 * (j + 307 * outer))]);
        std::sort(line.begin(), line.end());
        for (int64_t j = 0; j < 307; ++j) {
          ASSERT_EQ(sorted[static_cast<size_t>(inner + 31 * (j + 307 * outer))], line[static_cast<size_t>(j)]);
        }
        for (int64_t j = 0; j < 5; ++j) {
          ASSERT_EQ(top[static_cast<size_t>(inner + 31 * (j + 5 * outer))], line[static_cast<size_t>(306 - j)]);
        }
      }
    }
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      EXPECT_EQ(sort(x, 1).to_vector<double>(), sorted);
      EXPECT_EQ(topk(x, 5, 1).values.to_vector<double>(), top);
    }
    set_num_threads(0);
  }
}

TEST(SortedPlaces, LinesTooLongToBeCopied) {
  const int64_t count = 70001;
  const std::vector<double> values = drawn(2 * count, Values::many);
  const Array x = reshape(cast(Array(values, {2 * count}), Float32), {2, count});
  const auto found = topk(x, 20, 1).indices.to_vector<int32_t>();
  for (int64_t i = 0; i < 2; ++i) {
    std::vector<double> line;
    for (int64_t j = 0; j < count; ++j) line.push_back(values[static_cast<size_t>(2 * j + i)]);
    const std::vector<int32_t> wanted = sorted_places(line, true);
    for (size_t j = 0; j < 20; ++j) EXPECT_EQ(found[2 * j + static_cast<size_t>(i)], wanted[j]) << i << ' ' << j;
  }
}

/// Of few, which are compared, and of many, which are sorted by digits.
template <class T> void expect_sorted_ends() {
  for (const size_t copies : {1, 100}) {
    std::vector<T> values;
    for (size_t i = 0; i < copies; ++i) {
      for (const T end : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}) {
        for (const int off : {1, 0}) values.push_back(static_cast<T>(end < T{1} ? end + off : end - off));
      }
      for (const int near : {1, -1, 0}) values.push_back(static_cast<T>(near));
    }
    const Array x(values, {static_cast<int64_t>(values.size())});
    std::sort(values.begin(), values.end());
    EXPECT_EQ(sort(x).template to_vector<T>(), values) << to_string(x.dtype());
    std::reverse(values.begin(), values.end());
    EXPECT_EQ(sort(x, 0, true).template to_vector<T>(), values) << to_string(x.dtype());
  }
}

TEST(Sort, IntegersAreWholeAtTheEndsOfTheirTypes) {
  expect_sorted_ends<int8_t>();
  expect_sorted_ends<uint8_t>();
  expect_sorted_ends<int16_t>();
  expect_sorted_ends<uint16_t>();
  expect_sorted_ends<int32_t>();
  expect_sorted_ends<uint32_t>();
  expect_sorted_ends<int64_t>();
  expect_sorted_ends<uint64_t>();
}

}  // namespace
}  // namespace rosin
