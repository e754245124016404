// Running reductions against loops written out here: all dims, lines short and long enough to be cut, in both
// directions, NaN, any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

constexpr DType running_types[] = {UInt8, Int8,   Int16,   UInt16,   Int32,   UInt32,
                                   Int64, UInt64, Float16, BFloat16, Float32, Float64};

/// Lines of x (inner, n, outer) along the middle dim, each combined from its front or from its end.
template <class F>
std::vector<double> scanned(std::vector<double> x, int64_t inner, int64_t n, bool reversed, F&& combine) {
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = reversed ? x.size() - 1 - i : i, step = static_cast<size_t>(inner);
    const size_t place = at / step % static_cast<size_t>(n);
    const bool first = place == (reversed ? static_cast<size_t>(n) - 1 : 0);
    if (!first) x[at] = combine(x[reversed ? at + step : at - step], x[at]);
  }
  return x;
}

/// 0, 1 and 2, so that sums stay exact: in halves few of them are not 0.
std::vector<double> small_numbers(int64_t count, int64_t every) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i % every == 0 ? static_cast<double>(i * 7919 % 3) : 0);
  return values;
}

struct Sizes {
  int64_t inner, n, outer;
};
constexpr Sizes all_sizes[] = {{1, 1, 1},     {1, 5, 3},     {1, 3, 300},    {1, 17, 129},  {3, 5, 1},
                               {1, 1000, 7},  {7, 100, 5},   {70, 33, 2},    {1, 257, 64},  {1, 32768, 1},
                               {1, 32771, 1}, {1, 40001, 3}, {1, 33000, 16}, {1, 100003, 1}};

TEST(RunningReductions, SumsOfAllTypesAndSizes) {
  for (const Sizes& s : all_sizes) {
    const int64_t count = s.inner * s.n * s.outer;
    for (const DType type : running_types) {
      const bool narrow = size_of(type) == 1 || is_float(type);
      const auto values = small_numbers(count, narrow ? s.n / 60 + 1 : 1);
      const Array x = cast(reshape(Array(values, {count}), {s.inner, s.n, s.outer}), type);
      const auto wanted = scanned(values, s.inner, s.n, false, [](double a, double b) { return a + b; });
      EXPECT_EQ(cumsum(x, 1).to_vector<double>(), wanted) << to_string(type) << ' ' << s.inner << ' ' << s.n;
    }
  }
}

TEST(RunningReductions, ExtremaKeepTheFirstNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Sizes& s : all_sizes) {
    std::vector<double> values;
    for (int64_t i = 0; i < s.inner * s.n * s.outer; ++i)
      values.push_back(std::sin(static_cast<double>(i)) * 1e-3 * static_cast<double>(i));
    if (s.n > 1000) values[static_cast<size_t>(s.n * 2 / 3)] = nan;
    const auto larger = [](double a, double b) { return a > b || std::isnan(a) ? a : b; };
    const auto wanted = scanned(values, s.inner, s.n, false, larger);
    const auto got =
        cummax(reshape(Array(values, {s.inner * s.n * s.outer}), {s.inner, s.n, s.outer}), 1).to_vector<double>();
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) << s.n << ", element " << i;
    }
  }
}

/// A part of a product may overflow where the whole does not.
TEST(RunningReductions, ProductsKeepTheirOrder) {
  std::vector<double> values(50000, 1.0);
  for (size_t i = 0; i < 8000; ++i) values[i] = 0.5;
  for (size_t i = 20000; i < 20100; ++i) values[i] = 1e10;
  const auto wanted = scanned(values, 1, 50000, false, [](double a, double b) { return a * b; });
  EXPECT_EQ(cumprod(Array(values, {50000})).to_vector<double>(), wanted);
}

/// The gradient of a running sum runs from the end.
TEST(RunningReductions, BackwardSums) {
  for (const Sizes& s : all_sizes) {
    const int64_t count = s.inner * s.n * s.outer;
    const auto values = small_numbers(count, 1);
    const Array weights = reshape(Array(values, {count}), {s.inner, s.n, s.outer});
    const Array slope = gradient([&](const Array& x) { return sum(cumsum(x, 1) * weights); }, weights);
    const auto wanted = scanned(values, s.inner, s.n, true, [](double a, double b) { return a + b; });
    EXPECT_EQ(slope.to_vector<double>(), wanted) << s.inner << ' ' << s.n << ' ' << s.outer;
  }
}

TEST(RunningReductions, NumbersOfAnyKindStayNearTheirSums) {
  std::vector<double> values;
  for (int64_t i = 0; i < 100003; ++i) values.push_back(std::sin(static_cast<double>(i * i % 1009)));
  const Array x(values, {100003});
  const auto sums = scanned(values, 1, 100003, false, [](double a, double b) { return a + b; });
  const auto logs = scanned(values, 1, 100003, false,
                            [](double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); });
  const auto got = cumsum(x).to_vector<double>(), got_logs = logcumsumexp(x).to_vector<double>();
  const auto got_floats = cumsum(cast(x, Float32)).to_vector<double>();
  for (size_t i = 0; i < sums.size(); ++i) {
    ASSERT_NEAR(got[i], sums[i], 1e-9) << i;
    ASSERT_NEAR(got_logs[i], logs[i], 1e-9) << i;
    ASSERT_NEAR(got_floats[i], sums[i], 5e-2) << i;
  }
}

/// What is added is at least 0, so no sum is below the one before it.
TEST(RunningReductions, SumsOfPositiveNumbersNeverFall) {
  std::vector<float> values;
  for (int64_t i = 0; i < 100003; ++i) values.push_back(1e-6f * static_cast<float>(i * 7919 % 1013));
  const auto sums = cumsum(Array(values, {100003})).to_vector<float>();
  for (size_t i = 1; i < sums.size(); ++i) ASSERT_GE(sums[i], sums[i - 1]) << i;
}

TEST(RunningReductions, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<float> values;
  for (int64_t i = 0; i < 120000; ++i) values.push_back(std::sin(static_cast<float>(i * 13 % 4001)));
  const Array x(values, {120000}), rows = reshape(x, {1000, 120}), columns = reshape(x, {120, 1000});
  const auto all = [&] {
    std::vector<std::vector<float>> results;
    for (const Array& y : {cumsum(x), logcumsumexp(x), cumprod(x), cumsum(rows), cumsum(rows, 1), cummin(columns, 1),
                           cast(cumsum(cast(rows, Float16)), Float32)}) {
      results.push_back(y.to_vector<float>());
    }
    return results;
  };
  set_num_threads(1);
  const auto wanted = all();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(all(), wanted) << threads << " threads";
  }
  set_num_threads(0);
}

TEST(RunningReductions, OfNothing) {
  EXPECT_EQ(cumsum(Array(std::vector<float>{}, {0})).shape(), (Shape{0}));
  EXPECT_EQ(cumsum(Array(std::vector<float>{}, {0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(cumsum(Array(std::vector<float>{}, {3, 0})).shape(), (Shape{3, 0}));
}

}  // namespace
}  // namespace rosin
