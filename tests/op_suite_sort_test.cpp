// The op suite, sorting: on every device, in every type and whatever way a line of its length takes, places are those
// of std::stable_sort. Read first: op_suite.hpp, src/kernels/sort.cpp (the ways).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <rosin/index.hpp>
#include <rosin/sort.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

constexpr std::array<DType, 13> sorted_types = {Bool,  UInt8,  Int8,    Int16,    UInt16,  Int32,  UInt32,
                                                Int64, UInt64, Float16, BFloat16, Float32, Float64};

/// Any bits of the type, NaN and subnormal numbers too; or a few numbers, among them both zeros, infinities and NaN.
Array drawn(const Shape& shape, DType type, bool few, uint64_t seed) {
  constexpr double special[] = {0.0,
                                -0.0,
                                1.5,
                                -1.5,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};
  std::mt19937_64 engine(seed);
  const auto count = static_cast<size_t>(shape.count());
  std::vector<uint64_t> bits(count);
  for (uint64_t& number : bits) number = few ? engine() % 7 : engine();
  if (type == Bool || !is_float(type)) {
    if (type == Bool) std::for_each(bits.begin(), bits.end(), [](uint64_t& number) { number &= 1; });
    return evaluated(cast(Array(bits, shape), type));
  }
  std::vector<double> numbers(count);
  const auto reach = type == Float64 ? 1000 : type == Float16 ? 20 : 130;  // beyond the largest and the least
  for (size_t i = 0; i < count; ++i) {
    const double fraction = static_cast<double>(static_cast<int64_t>(bits[i])) * 0x1p-63;
    const double wide = std::ldexp(fraction, static_cast<int>(engine() % static_cast<uint64_t>(2 * reach)) - reach);
    numbers[i] = few ? special[bits[i]] : bits[i] % 64 == 0 ? special[bits[i] / 64 % 7] : wide;
  }
  return evaluated(cast(Array(numbers, shape), type));
}

/// The order that rosin documents: NaN is the largest, and all of them are equal.
template <class T> bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
  else return a < b;
}

/// The places of lines of `size` elements that follow each other.
template <class T> std::vector<int32_t> stable_order(const std::vector<T>& all, int64_t size, bool descending) {
  std::vector<int32_t> places(all.size());
  const auto length = static_cast<size_t>(size);
  for (size_t first = 0; first < all.size(); first += length) {
    const auto begin = places.begin() + static_cast<int64_t>(first), end = begin + size;
    std::iota(begin, end, 0);
    std::stable_sort(begin, end, [&](int32_t a, int32_t b) {
      const T x = all[first + static_cast<size_t>(a)], y = all[first + static_cast<size_t>(b)];
      return descending ? before(y, x) : before(x, y);
    });
  }
  return places;
}

std::vector<int32_t> stable_order(const Array& lines, bool descending) {
  if (is_float(lines.dtype())) return stable_order(lines.to_vector<double>(), lines.size(0), descending);
  if (lines.dtype() == UInt64) return stable_order(lines.to_vector<uint64_t>(), lines.size(0), descending);
  return stable_order(cast(lines, Int64).to_vector<int64_t>(), lines.size(0), descending);
}

/// x, which stands on the host, with dim `dim` first.
Array with_lines_first(const Array& x, int dim) {
  std::vector<int> order = {dim};
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim) order.push_back(d);
  }
  return evaluated(permute(x, order));
}

Array here(const Array& x) { return transferred(evaluated(x), 0); }

/// One check: a sort of x, or of what `view` makes of it, along a dim.
struct Sorting {
  std::string about;
  Array x;
  int dim;
  bool descending;
  std::function<Array(const Array&)> view = [](const Array& whole) { return whole; };

  void check() const {
    const Array seen = view(there(x)), lines = with_lines_first(evaluated(view(x)), dim);
    const std::vector<int32_t> wanted = stable_order(lines, descending);
    const Array places = here(argsort(seen, dim, descending));
    ASSERT_EQ(with_lines_first(places, dim).to_vector<int32_t>(), wanted) << about;
    const Array values = here(sort(seen, dim, descending));
    EXPECT_EQ(bit_difference(values, evaluated(take_along(evaluated(view(x)), places, dim))), "") << about;
    const int64_t k = std::min<int64_t>(seen.size(dim), 5);
    const TopK top = topk(seen, k, dim, descending);
    const Array first = slice(places, dim, 0, k);
    EXPECT_EQ(bit_difference(here(top.indices), evaluated(first)), "") << about;
    EXPECT_EQ(bit_difference(here(top.values), evaluated(slice(values, dim, 0, k))), "") << about;
  }
};

void check_all(const std::vector<Sorting>& checks) {
  run_checks(checks.size(), [&](size_t i) { checks[i].check(); });
}

/// Where kernels are compiled, one type of each size and each sort of key alone; in short two of these. (Keys of one
/// and of four bytes go by radix then in the tests of many lines and of dims, whose types are their own.)
bool is_tested(DType type) {
  const bool some = type == Int64 || type == Float16, special = some || type == UInt8 || type == Float32;
  return has_type_there(type) && (is_short_there() ? some : special || !compiles_there());
}

/// Lines of these sizes, of types with so many bytes (0: of all).
void check_sizes(const std::vector<int64_t>& sizes, size_t bytes = 0) {
  std::vector<Sorting> checks;
  for (const DType type : sorted_types) {
    if (!is_tested(type) || (bytes != 0 && size_of(type) != bytes)) continue;
    for (const int64_t size : sizes) {
      for (const bool few : {false, true}) {
        const std::string about = to_string(type) + (", " + std::to_string(size)) + (few ? " of few" : "");
        const Array x = drawn({size}, type, few, static_cast<uint64_t>(size));
        for (const bool descending : {false, true}) {
          if (size > 8192 && descending == (few != is_float(type))) continue;  // enough, and sooner
          checks.push_back({about, x, 0, descending});
        }
      }
    }
  }
  check_all(checks);
}

TEST(OpSuiteSort, ShortLinesGoByCounting) { check_sizes({1, 31, 127, 128}); }

TEST(OpSuiteSort, LinesOfATileAreSortedByOneGroup) {
  check_sizes(is_short_there() ? std::vector<int64_t>{129, 1009, 2048}
                               : std::vector<int64_t>{129, 256, 257, 1009, 1024, 1025, 2047, 2048});
}

TEST(OpSuiteSort, LinesOfSomeTilesAreMerged) { check_sizes({2049, 4096, 6007}); }

TEST(OpSuiteSort, LongLinesGoByRadix) {
  check_sizes({5003}, 1);
  check_sizes({14009}, 2);
  check_sizes({40009}, 4);
  check_sizes({70001}, 8);
  if (compiles_there()) return;
  check_all({{"more tiles than one step adds up", drawn({2100001}, Bool, false, 2), 0, true}});
}

TEST(OpSuiteSort, ManyLinesOfSomeTilesGoByRadix) {
  std::vector<Sorting> checks;
  for (const DType type : {Bool, UInt8, Float16}) {
    if (type != Float16 && compiles_there()) continue;
    for (const int64_t size : {2049, 4095, 4097}) {
      if (size != 4095 && is_short_there()) continue;
      const Array x = drawn({size, type == Float16 ? 60 : 14}, type, false, 3);
      checks.push_back({to_string(type) + (", " + std::to_string(size)), x, 0, size == 4095});
    }
  }
  checks.push_back({"Float32, 4099", drawn({4099, 33}, Float32, false, 4), 0, true});
  check_all(checks);
}

TEST(OpSuiteSort, AlongEveryDimAndOfViews) {
  std::vector<Sorting> checks;
  for (const int64_t size : {60, 300, 2500}) {
    for (int dim = 0; dim < 3; ++dim) {
      if (dim != 1 && compiles_there()) continue;
      int64_t sizes[] = {3, 5, 4};
      if (size == 2500) sizes[(dim + 1) % 3] = 12;  // so many that they go by radix
      sizes[dim] = size;
      const Array x = drawn(Shape(std::span<const int64_t>(sizes)), UInt8, false, 5);
      const std::string about = std::to_string(size) + " along " + std::to_string(dim);
      checks.push_back({about, x, dim, dim == 1});
      const auto view = [](const Array& whole) {
        return slice(permute(slice(whole, 2, -1, to_end, -1), {1, 2, 0}), 1, 1, to_end);
      };
      checks.push_back({about + ", a view", x, (dim + 2) % 3, dim == 0, view});
      checks.push_back({about + ", repeated", slice(x, (dim + 1) % 3, 0, 1), dim, true, [=](const Array& one) {
                          int64_t wide[] = {one.size(0), one.size(1), one.size(2)};
                          wide[(dim + 1) % 3] = 13;
                          return expand(one, Shape(std::span<const int64_t>(wide)));
                        }});
    }
  }
  check_all(checks);
}

}  // namespace
}  // namespace rosin::suite
