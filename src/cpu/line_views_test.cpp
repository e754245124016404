// Elementwise ops, row programs and sums on parts of longer rows, as gates and heads are, against the place of each
// element written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr DType line_types[] = {Bool, UInt8, Int32, Int64, Float16, BFloat16, Float32, Float64};

float line_value(int64_t i) { return static_cast<float>(i * 7919 % 61); }

Array numbers(const Shape& shape, DType type) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(line_value(i));
  return cast(Array(values, shape), type);
}

float as(DType type, float x) { return type == Bool ? static_cast<float>(x != 0) : x; }

template <class F> void check(const Array& found, F&& expected, const std::string& what) {
  const std::vector<float> values = cast(found, Float32).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], expected(static_cast<int64_t>(i)))
        << what << " at " << i << " of " << to_string(found.shape());
  }
}

/// Rows of `of` elements, of which those from `first` on are read, `length` of them.
struct Part {
  int64_t first, length, of;
  int64_t place(int64_t i) const { return i / length * of + first + i % length; }
};

constexpr Part parts[] = {{0, 16, 33},    {17, 16, 33},    {3, 31, 40},       {64, 64, 256},
                          {1, 100, 1001}, {0, 1023, 1024}, {512, 1024, 1537}, {7, 17000, 17009}};

TEST(LineViews, ElementsComeFromTheirPlaces) {
  for (const DType type : line_types) {
    for (const Part& part : parts) {
      for (const int64_t rows : {2, 3, 37}) {
        const Array x = numbers({part.of, rows}, type), y = numbers({part.length, rows}, type);
        const Array view = slice(x, 0, part.first, part.first + part.length);
        const std::string what = std::to_string(part.length) + " of " + to_string(type);
        check(
            where(eq(y, y), view, y), [&](int64_t i) { return as(type, line_value(part.place(i))); }, what);
        check(
            cast(view, Float32) * 2 + cast(y, Float32),
            [&](int64_t i) { return as(type, line_value(part.place(i))) * 2 + as(type, line_value(i)); },
            what + ", converted");
      }
    }
  }
}

TEST(LineViews, TwoPartsMeetALineOfEachRow) {
  for (const Part& part : parts) {
    constexpr int64_t rows = 29;
    const Array x = numbers({part.of, rows}, Float32), line = numbers({1, rows}, Float32);
    const Array first = slice(x, 0, 0, part.length), last = slice(x, 0, part.of - part.length, part.of);
    const auto expected = [&](int64_t i) {
      const int64_t row = i / part.length, begin = row * part.of + i % part.length;
      return line_value(begin) - line_value(begin + part.of - part.length) * line_value(row);
    };
    check(first - last * line, expected, std::to_string(part.length));
    const std::vector<float> sums = sum(first - last * line, 0).to_vector<float>();
    double all = 0;
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < part.length; ++i) sum += expected(row * part.length + i);
      EXPECT_NEAR(sums[static_cast<size_t>(row)], sum, 2e-7 * std::abs(sum) + 1e-3) << part.length;
      all += sum;
    }
    EXPECT_NEAR(sum(cast(first, Float64) - cast(last, Float64) * cast(line, Float64)).item(), all,
                1e-12 * (1 + std::abs(all)))
        << part.length;
  }
}

TEST(LineViews, OuterDimsStepTurnAndStay) {
  constexpr int64_t a = 40, b = 5, c = 7, d = 3;
  const Array x = numbers({a, b, c, d}, Float32), y = numbers({a - 9, b, c, d}, Float32);
  const auto at = [](int64_t i, int64_t j, int64_t k, int64_t l) { return line_value(i + a * (j + b * (k + c * l))); };
  const auto expect = [&](const Array& found, int64_t rows, int64_t planes, auto&& place, const char* what) {
    check(
        found,
        [&](int64_t n) {
          const int64_t i = n % (a - 9), row = n / (a - 9);
          return place(i, row % rows, row / rows % planes, row / rows / planes);
        },
        what);
  };
  const Array view = slice(x, 0, 4, a - 5);
  expect(
      view + y * 0, b, c, [&](int64_t i, int64_t j, int64_t k, int64_t l) { return at(i + 4, j, k, l); }, "slices");
  expect(
      flip(view, 1) + y * 0, b, c,
      [&](int64_t i, int64_t j, int64_t k, int64_t l) { return at(i + 4, b - 1 - j, k, l); }, "from the last row");
  expect(
      permute(view, {0, 2, 1, 3}) + reshape(y, {a - 9, c, b, d}) * 0, c, b,
      [&](int64_t i, int64_t j, int64_t k, int64_t l) { return at(i + 4, k, j, l); }, "planes before rows");
  expect(
      slice(view, 2, 1, 2) + y * 0, b, c, [&](int64_t i, int64_t j, int64_t, int64_t l) { return at(i + 4, j, 1, l); },
      "one plane for all");
  expect(
      slice(view, 1, 1, 5, 2) + slice(y, 1, 0, 2) * 0, 2, c,
      [&](int64_t i, int64_t j, int64_t k, int64_t l) { return at(i + 4, 1 + 2 * j, k, l); }, "every other row");
}

}  // namespace
}  // namespace rosin
