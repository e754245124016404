// Elementwise ops on views whose first dim has two elements, as the parts of complex numbers, against the place of each
// element written out here.
#include <gtest/gtest.h>

#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr DType pair_types[] = {UInt8, Int16, Int32, Int64, Float16, Float32, Float64};

float pair_value(int64_t i) { return static_cast<float>(i * 37 % 61); }

Array numbers(int64_t count, DType type) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(pair_value(i));
  return cast(Array(values, {count}), type);
}

/// Expects found(j, i) to be expected(j, i) for both j and each i < count.
template <class F> void check(const Array& found, int64_t count, F&& expected, const char* what) {
  const std::vector<float> values = cast(found, Float32).to_vector<float>();
  ASSERT_EQ(values.size(), static_cast<size_t>(2 * count));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      ASSERT_EQ(values[static_cast<size_t>(2 * i + j)], expected(j, i))
          << what << ' ' << j << ' ' << i << " of " << count << ' ' << to_string(found.dtype());
    }
  }
}

TEST(PairViews, ElementsComeFromTheirPlaces) {
  for (const DType type : pair_types) {
    for (const int64_t n : {1, 2, 5, 257, 4099, 70001}) {
      const Array pairs = reshape(numbers(2 * n, type), {2, n}), line = reshape(numbers(n, type), {1, n});
      check(
          pairs + line, n, [](int64_t j, int64_t i) { return pair_value(2 * i + j) + pair_value(i); },
          "a line beside pairs");
      check(
          line + slice(pairs, 0, 0, 1) + pairs * 0, n,
          [](int64_t, int64_t i) { return pair_value(i) + pair_value(2 * i); }, "the first of each pair");
      check(
          line + slice(pairs, 0, 1, 2) + pairs * 0, n,
          [](int64_t, int64_t i) { return pair_value(i) + pair_value(2 * i + 1); }, "the second of each pair");
      check(
          flip(pairs, 0) + line, n, [](int64_t j, int64_t i) { return pair_value(2 * i + 1 - j) + pair_value(i); },
          "flipped");
      check(
          pairs * 0 + reshape(slice(numbers(2 * n - 1, type), 0, 0, 2 * n - 1, 2), {1, n}), n,
          [](int64_t, int64_t i) { return pair_value(2 * i); }, "the first of pairs, the last of which is not whole");
      check(
          flip(pairs, 0) * 2 + slice(pairs, 0, 1, 2), n,
          [](int64_t j, int64_t i) { return pair_value(2 * i + 1 - j) * 2 + pair_value(2 * i + 1); },
          "flipped, and the second");
      check(
          pairs + flip(line, 1), n, [n](int64_t j, int64_t i) { return pair_value(2 * i + j) + pair_value(n - 1 - i); },
          "a line from its end");
    }
  }
}

TEST(PairViews, MoreDimsFollow) {
  const int64_t a = 7, b = 11, c = 5;
  const Array x = reshape(numbers(2 * a * b * c, Float32), {2, a, b, c}),
              y = reshape(numbers(a * c, Float32), {1, a, 1, c});
  const auto expected = [&](int64_t j, int64_t i) {
    const int64_t first = i % a, last = i / (a * b);
    return pair_value(2 * i + j) + pair_value(first + a * last);
  };
  check(x + y, a * b * c, expected, "a dim in between");
  const Array z = slice(x, 1, 1, a, 2), w = reshape(numbers(a / 2 * b * c, Float32), {1, a / 2, b, c});
  const auto stepped = [&](int64_t j, int64_t i) {
    const int64_t place = 1 + i % (a / 2) * 2 + i / (a / 2) * a;
    return pair_value(2 * place + j) * pair_value(i);
  };
  check(z * w, a / 2 * b * c, stepped, "every other one");
  const std::vector<float> sums = sum(x + y, {0}).to_vector<float>();
  for (int64_t i = 0; i < a * b * c; ++i) {
    EXPECT_EQ(sums[static_cast<size_t>(i)], expected(0, i) + expected(1, i)) << i;
  }
}

}  // namespace
}  // namespace rosin
