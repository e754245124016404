// Finding and counting by what is said of them in search.hpp, element by element; sizes go across the parts that
// threads take, whose number changes nothing. Values of NumPy and PyTorch: arrange_test.cpp.
#include <rosin/search.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/test_device.hpp"

namespace rosin {
namespace {

constexpr int64_t sizes[] = {0, 1, 7, 32767, 32768, 32769, 100003};

/// Whether f gives the same for any number of threads; what it gives.
template <class F> auto with_threads(F&& f) {
  const auto first = f();
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(f(), first) << threads << " threads";
  }
  set_num_threads(0);
  return first;
}

std::vector<int64_t> places_where(const std::vector<float>& x, auto&& holds) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < x.size(); ++i) {
    if (holds(x[i])) places.push_back(static_cast<int64_t>(i));
  }
  return places;
}

TEST(Search, FindsWhatHoldsWhereverItStands) {
  for (const int64_t n : sizes) {
    Rng rng(1);
    const Array x = uniform(rng, {n}, 0, 1);
    const std::vector<float> values = x.to_vector();
    for (const float bound : {-1.0f, 0.001f, 0.5f, 0.999f, 2.0f}) {  // all of them, ..., none
      const auto found = with_threads([&] { return nonzero(x > bound).to_vector<int64_t>(); });
      EXPECT_EQ(found, places_where(values, [&](float v) { return v > bound; })) << n << " above " << bound;
      std::vector<float> wanted;
      for (const int64_t place : found) wanted.push_back(values[static_cast<size_t>(place)]);
      EXPECT_EQ(with_threads([&] { return masked_select(x, x > bound).to_vector(); }), wanted);
    }
  }
}

TEST(Search, OnlyZerosAreNotFound) {
  const float nan = std::nanf(""), least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(nonzero(Array({0.0f, nan, -0.0f, least, -1.0f}, {5})).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(nonzero(Array({0, 256, 65536, 0}, {2, 2})).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(nonzero(Array(true)).to_vector<int64_t>(), (std::vector<int64_t>{0}));
  EXPECT_EQ(nonzero(Array(2.5)).to_vector<int64_t>(), (std::vector<int64_t>{0}));
}

TEST(Search, KindsAreThoseOfAMap) {
  for (const int64_t n : sizes) {
    Rng rng(2);
    const Array x = randint(rng, -40, 40, {n}), parts = cast(x, Float32) * 0.25f;
    std::map<float, int64_t> counted;
    for (const float v : parts.to_vector()) ++counted[v];
    const Unique found = unique(parts), whole = unique(x);
    std::vector<float> values;
    std::vector<int64_t> counts;
    for (const auto& [value, count] : counted) {
      values.push_back(value);
      counts.push_back(count);
    }
    EXPECT_EQ(found.values.to_vector(), values);
    EXPECT_EQ(found.counts.to_vector<int64_t>(), counts);
    EXPECT_EQ(gather(found.values, found.inverse, 0).to_vector(), parts.to_vector());
    EXPECT_EQ(whole.counts.to_vector<int64_t>(), counts);
    EXPECT_EQ(whole.values.dtype(), x.dtype());
  }
  EXPECT_EQ(unique(Array({true, false, true}, {3})).counts.to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
}

TEST(Search, KindsHaveTheGradientOfTheirFirstElement) {
  const Array x({2.0f, 1.0f, 2.0f, 3.0f}, {4});
  const auto loss = [](const Array& v) { return sum(unique(v).values * Array({1.0f, 10.0f, 100.0f}, {3})); };
  EXPECT_EQ(gradient(loss, x).to_vector(), (std::vector<float>{10, 1, 0, 100}));
}

TEST(Search, CountsNumbersInsideAlone) {
  for (const DType type : {Int32, Int64, UInt8, Int8, UInt32}) {
    for (const int64_t classes : {1, 5, 100, 300}) {
      for (const int64_t n : sizes) {
        Rng rng(3);
        const Array x = cast(randint(rng, 0, 130, {n}) - (type == Int8 ? 2 : 0), type);
        std::vector<int64_t> wanted(static_cast<size_t>(classes));
        for (const int64_t v : x.to_vector<int64_t>()) {
          if (v >= 0 && v < classes) ++wanted[static_cast<size_t>(v)];
        }
        const auto got = with_threads([&] { return bincount(x, classes).to_vector<int64_t>(); });
        EXPECT_EQ(got, wanted) << to_string(type) << ", " << classes << " classes of " << n;
      }
    }
  }
  EXPECT_EQ(bincount(Array({1, -1}, {2}), 0).shape(), (Shape{0}));
  EXPECT_EQ(bincount(Array({1, 1, 5}, {3}), 2, Array({0.5f, 2.0f, 4.0f}, {3})).to_vector(),
            (std::vector<float>{0, 2.5f}));
  EXPECT_EQ(error_of([] { bincount(arange(3), -1); }, ErrorKind::shape),
            "bincount: there are 0 classes or more; got -1; count them");
}

/// The number of edges low + k * width, each step rounded to the type, that are at most the value.
template <class T> std::vector<int64_t> counted(const std::vector<T>& x, int64_t bins, double low, double high) {
  std::vector<T> edges;
  const T width = static_cast<T>((high - low) / static_cast<double>(bins));
  for (int64_t k = 0; k <= bins; ++k) {
    const T offset = static_cast<T>(k) * width;
    edges.push_back(static_cast<T>(low) + offset);
  }
  std::vector<int64_t> counts(static_cast<size_t>(bins));
  for (const T value : x) {
    if (!(value >= static_cast<T>(low) && value <= static_cast<T>(high))) continue;
    const int64_t bin = std::upper_bound(edges.begin(), edges.end(), value) - edges.begin() - 1;
    ++counts[static_cast<size_t>(std::min(bin, bins - 1))];
  }
  return counts;
}

/// Random values, edges, and what is beside these.
template <class T> void compare_histogram(int64_t n, int64_t bins, double low, double high) {
  Rng rng(4);
  const double reach = high - low;
  std::vector<T> values = uniform(rng, {n}, low - reach / 8, high + reach / 8, dtype_of<T>).template to_vector<T>();
  for (int64_t k = 0; k <= std::min<int64_t>(bins, 1000); ++k) {
    const T edge =
        static_cast<T>(low) + static_cast<T>(static_cast<T>(k) * static_cast<T>(reach / static_cast<double>(bins)));
    for (const T end : {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity(), edge}) {
      values.push_back(std::nextafter(edge, end));
    }
  }
  for (const T odd : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
    values.push_back(odd);
    values.push_back(-odd);
  }
  const Array x(values, {static_cast<int64_t>(values.size())});
  const auto got = with_threads([&] { return histogram(x, bins, low, high).template to_vector<int64_t>(); });
  EXPECT_EQ(got, counted(values, bins, low, high)) << bins << " bins in " << low << " to " << high;
}

TEST(Search, HistogramsFollowTheirEdges) {
  for (const int64_t n : sizes) compare_histogram<float>(n, 100, -3, 3);
  for (const auto& [bins, low, high] : std::initializer_list<std::tuple<int64_t, double, double>>{{1, 0, 1},
                                                                                                  {3, 0.1, 0.7},
                                                                                                  {1000, -1e-3, 17.3},
                                                                                                  {100, 1e6, 1e6 + 1},
                                                                                                  {7, -1e-38, 1e-38},
                                                                                                  {5, -3e38, 3e38},
                                                                                                  {60000, 0, 1},
                                                                                                  {9, 1.0, 1.0000002},
                                                                                                  {4, 0, 1e-44}}) {
    compare_histogram<float>(5000, bins, low, high);
    compare_histogram<double>(5000, bins, low, high);
  }
  EXPECT_EQ(histogram(Array({1, 2, 2, 5}, {4}), 2, 1, 3).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
}

TEST(Search, AnswersOfADeviceAreThoseOfTheCpu) {
  Rng rng(5);
  const Array x = uniform(rng, {3, 41}, -1, 1), parts = cast(x * 8, Int32);
  const auto answers = [](const Array& v, const Array& whole) {
    const Unique kinds = unique(whole);
    return std::vector<Array>{nonzero(v > 0),
                              masked_select(v, v > 0),
                              kinds.values,
                              kinds.inverse,
                              kinds.counts,
                              bincount(whole, 5),
                              histogram(v, 7, -0.9, 0.7),
                              histogram(v, 3, 1.0, 1.0000001)};
  };
  const Device there = some_device();
  const std::vector<Array> here = answers(x, parts), others = answers(x | there, parts | there);
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(others[i].device(), there) << i;
    EXPECT_EQ(others[i].to_vector<double>(), here[i].to_vector<double>()) << i;
  }
}

}  // namespace
}  // namespace rosin
