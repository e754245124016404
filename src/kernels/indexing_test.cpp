// Kernels that move elements (concat, pad, gather, scatter), sort, scan and draw, against the same ops on the CPU.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include <rosin/copy.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>

#include "../tests/error_testing.hpp"
#include "base/philox.hpp"
#include "graph/integers.hpp"
#include "graph/node.hpp"
#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

constexpr DType every_type[] = {Bool,   UInt8,   Int8,     Int16,   UInt16,  Int32,      UInt32,    Int64,
                                UInt64, Float16, BFloat16, Float32, Float64, ComplexF32, ComplexF64};
constexpr DType number_types[] = {UInt8, Int8,   Int16,   UInt16,   Int32,   UInt32,
                                  Int64, UInt64, Float16, BFloat16, Float32, Float64};

Array evaluated(const Array& x) {
  eval(x);
  return x;
}

/// A rank-1 array.
template <class T> Array line(std::initializer_list<T> values) {
  return Array(std::vector<T>(values), {static_cast<int64_t>(values.size())});
}

/// 0, step, 2 step, ... modulo range, plus low.
Array wrapped(const Shape& shape, int step, int range, int low = 0) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<int32_t>(i * step % range + low));
  return Array(values, shape);
}

/// Whole numbers in [-50, 51) as elements of the type.
Array counted(const Shape& shape, DType type) { return evaluated(cast(wrapped(shape, 37, 101, -50), type)); }

/// The bytes that f gives by kernels are those that it gives on the CPU.
template <class F> void expect_same_bytes(F&& f, const std::string& what = "") {
  const Array wanted = evaluated(f()), got = by_kernels(f);
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  const size_t bytes = static_cast<size_t>(wanted.count()) * size_of(wanted.dtype());
  if (bytes == 0) return;
  EXPECT_EQ(std::memcmp(got.node()->data(), wanted.node()->data(), bytes), 0) << what;
}

/// The CPU's error comes out of the kernels, word by word.
template <class F> void expect_same_error(F&& f) {
  const auto run = [&] { return evaluated(f()); };
  const std::string wanted = error_of(run);
  EXPECT_NE(wanted, "no error");
  EXPECT_EQ(error_of([&] { return by_kernels(run); }), wanted);
}

/// How many launches f takes; they do nothing.
template <class F> int64_t launches_of(F&& f) {
  InterpretedExecutor executor;
  int64_t launches = 0;
  executor.run = [&](const KernelCode&, const uint32_t(&)[3], const reference::Block*, const rosin_number*) {
    ++launches;
  };
  by_kernels(f, executor);
  return launches;
}

/// f(true) after f(false) needs no new code.
template <class F> void expect_same_codes(F&& f) {
  InterpretedExecutor executor;
  by_kernels([&] { return f(false); }, executor);
  const size_t codes = executor.codes.size();
  EXPECT_GT(codes, 0u);
  by_kernels([&] { return f(true); }, executor);
  EXPECT_EQ(executor.codes.size(), codes);
}

TEST(KernelMovement, ConcatOfEveryTypeAlongEveryDim) {
  for (const DType type : every_type) {
    for (int dim = 0; dim < 3; ++dim) {
      std::vector<Array> parts;
      for (const int64_t size : {3, 1, 0, 4}) {
        int64_t sizes[] = {2, 3, 5};
        sizes[dim] = size;
        parts.push_back(counted(Shape(std::span<const int64_t>(sizes)), type));
      }
      for (size_t count = 2; count <= parts.size(); ++count) {
        expect_same_bytes([&] { return concat(std::span<const Array>(parts).first(count), dim); }, to_string(type));
      }
    }
  }
}

TEST(KernelMovement, ConcatReadsViews) {
  for (const DType type : {UInt8, Float32, ComplexF64}) {
    const Array x = counted({5, 4, 3}, type);
    const Array backwards = slice(x, 1, -1, to_end, -2), turned = permute(slice(x, 0, 1, 5, 2), {0, 2, 1});
    const Array thin = slice(slice(x, 0, 4, 5), 2, 2, 0, -1);
    expect_same_bytes([&] { return concat({backwards, slice(x, 1, 1, 4)}, 1); });
    expect_same_bytes([&] { return concat({turned, turned, expand(slice(turned, 0, 0, 1), {1, 3, 4})}, 0); });
    expect_same_bytes([&] { return concat({thin, thin}, 1); });
  }
}

// More than one launch takes: each of them fills its part of the result.
TEST(KernelMovement, ConcatOfManyArrays) {
  for (const DType type : {UInt8, Float32, ComplexF64}) {
    for (int dim = 0; dim < 3; ++dim) {
      std::vector<Array> parts;
      for (int i = 0; i < 27; ++i) {
        int64_t sizes[] = {3, 2, 2};
        sizes[dim] = i == 3 || (i >= 8 && i < 16) ? 0 : i % 4 + 1;
        parts.push_back(counted(Shape(std::span<const int64_t>(sizes)), type));
      }
      expect_same_bytes([&] { return concat(parts, dim); }, to_string(type));
    }
    std::vector<Array> ones(17, counted({2, 1}, type));
    expect_same_bytes([&] { return concat(ones, 1); }, to_string(type));
    expect_same_bytes([&] { return stack(ones, 0); }, to_string(type));
  }
}

TEST(KernelMovement, PadOfEveryTypeWithNumbersAndArrays) {
  for (const DType type : every_type) {
    const Array x = counted({3, 1, 4}, type), value = evaluated(cast(Array(7), type));
    for (int dim = 0; dim < 3; ++dim) {
      expect_same_bytes([&] { return pad(x, dim, 2, 1); }, to_string(type));
      expect_same_bytes([&] { return pad(x, dim, 0, 3, is_integer(type) && !is_signed(type) ? 2 : -2); },
                        to_string(type));
      expect_same_bytes([&] { return pad(x, dim, 1, 0, 2.5); }, to_string(type));
      expect_same_bytes([&] { return pad(x, dim, 1, 1, value); }, to_string(type));
    }
    expect_same_bytes([&] { return pad(slice(x, 2, -1, to_end, -3), 0, 1, 1, 1); }, to_string(type));
  }
  expect_same_bytes([x = zeros({0, 3})] { return pad(x, 0, 2, 2, 5); });
}

TEST(KernelMovement, SizesAndWidthsAreParameters) {
  const Array x = counted({6, 5}, Float32), y = counted({9, 7}, Float32);
  expect_same_codes([&](bool larger) { return pad(larger ? y : x, 1, larger ? 4 : 2, 3, larger ? 1.5 : 0.5); });
  expect_same_codes([&](bool larger) { return larger ? concat({y, y}, 1) : concat({x, x}, 1); });
}

TEST(KernelGather, SlicesOfEveryTypeAlongEveryDim) {
  for (const DType type : every_type) {
    const Array x = counted({4, 5, 3}, type);
    for (int dim = 0; dim < 3; ++dim) {
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{2, 3}, Shape{0}}) {
        const Array indices = wrapped(shape, 2, static_cast<int>(x.size(dim)));
        expect_same_bytes([&] { return gather(x, indices, dim); }, to_string(type));
      }
    }
  }
}

TEST(KernelGather, IndicesOfEveryIntegerTypeCountFromTheEndToo) {
  const Array x = counted({6, 4}, Float32);
  for (const DType type : number_types) {
    if (is_float(type)) continue;
    const bool is_signed = type == Int8 || type == Int16 || type == Int32 || type == Int64;
    const Array indices = evaluated(cast(line({5, 0, is_signed ? -6 : 3, is_signed ? -1 : 2, 0}), type));
    expect_same_bytes([&] { return gather(x, indices, 0); }, to_string(type));
  }
  expect_same_bytes([&] { return gather(slice(permute(x, {1, 0}), 1, -1, to_end, -1), line({1, -1}), 1); });
}

TEST(KernelGather, TakeAlongAndOnehot) {
  const Array places = wrapped({4, 3, 2}, 3, 11, -5);
  for (const DType type : every_type) {
    const Array x = counted({4, 6, 2}, type);
    expect_same_bytes([&] { return take_along(x, places, 1); }, to_string(type));
  }
  const Array labels = wrapped({6}, 2, 5);
  expect_same_bytes([&] { return onehot(labels, 5); });
  expect_same_bytes([&] { return onehot(reshape(labels, {3, 2}), 9); });
}

TEST(KernelGather, BadIndicesGiveTheErrorOfTheCpu) {
  const Array x = counted({3, 4}, Float32), none = evaluated(zeros({3, 0}));
  for (const int64_t bad : {int64_t{4}, int64_t{-5}, int64_t{1} << 40}) {
    expect_same_error([&] { return gather(x, line({int64_t{0}, bad}), 1); });
    expect_same_error([&] { return take_along(x, reshape(line({bad, int64_t{0}, int64_t{0}}), {3, 1}), 1); });
    expect_same_error([&] { return scatter(x, line({int64_t{0}, bad}), slice(x, 1, 0, 2), 1); });
    expect_same_error([&] { return scatter_add(x, line({int64_t{0}, bad}), slice(x, 1, 0, 2), 1); });
    expect_same_error([&] { return onehot(line({bad}), 4); });
  }
  expect_same_error([&] { return onehot(line({-1}), 4); });
  expect_same_error([&] { return gather(none, line({0}), 1); });
  expect_same_error([&] { return scatter(none, line({0}), ones({3, 1}), 1); });
  expect_same_bytes([&] { return gather(x, line({-4, 3}), 1); });
}

// (As long as as many neighbours are moved at once.)
TEST(KernelGather, SizesAreParameters) {
  const Array x = counted({6, 5}, Float32), y = counted({10, 7}, Float32);
  const Array few = line({1, 0}), many = line({1, 6, 3});
  expect_same_codes([&](bool larger) { return gather(larger ? y : x, larger ? many : few, 1); });
  expect_same_codes([&](bool larger) {
    return scatter_add(larger ? y : x, larger ? many : few, slice(larger ? y : x, 1, 0, larger ? 3 : 2), 1);
  });
}

TEST(KernelScatter, OfEveryTypeTheLastUpdateStays) {
  const Array indices = line({1, -1, 1, 0, 1});
  for (const DType type : every_type) {
    for (int dim = 0; dim < 3; ++dim) {
      int64_t sizes[] = {3, 4, 2};
      const Array target = counted(Shape(std::span<const int64_t>(sizes)), type);
      sizes[dim] = 5;
      const Array updates = counted(Shape(std::span<const int64_t>(sizes)), type);
      expect_same_bytes([&] { return scatter(target, indices, updates, dim); }, to_string(type));
      if (type == Bool || is_complex(type)) continue;
      expect_same_bytes([&] { return scatter_add(target, indices, updates, dim); }, to_string(type));
    }
  }
  const Array x = counted({5}, Float32);
  expect_same_bytes([&] { return scatter(x, line({2, 0}), line({7.0f, 8.0f})); });
  expect_same_bytes([&] { return scatter_add(x, zeros({0}, Int32), zeros({0})); });
  expect_same_bytes([&] { return scatter(x, reshape(indices, {5, 1}), reshape(x, {5, 1})); });
}

TEST(KernelScatter, CppNumbersStandForArrays) {
  const Array x = counted({5}, Float32);
  EXPECT_EQ(by_kernels([&] { return gather(x, -2); }).item(), x.item(3));
  EXPECT_EQ(by_kernels([&] { return scatter(x, 2, 7); }).item(2), 7);
  EXPECT_EQ(by_kernels([&] { return scatter_add(x, 2, 7.5); }).item(2), x.item(2) + 7.5);
  EXPECT_EQ(by_kernels([&] { return onehot(2, 4); }).to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1, 0}));
}

TEST(KernelScatter, FewAndManyLines) {
  for (const Shape& shape : {Shape{5000}, Shape{3, 900}, Shape{900, 40}}) {
    const Array target = counted(shape, Int32);
    for (int dim = 0; dim < shape.rank(); ++dim) {
      const Array indices = wrapped({700}, 7, static_cast<int>(shape[dim]));
      std::vector<int64_t> sizes(shape.begin(), shape.end());
      sizes[static_cast<size_t>(dim)] = 700;
      const Array updates = counted(Shape(std::span<const int64_t>(sizes)), Int32);
      expect_same_bytes([&] { return scatter_add(target, indices, updates, dim); });
    }
  }
}

// Beyond 4096 updates (of sums 32768) their indices are sorted.
TEST(KernelScatter, ManyUpdatesAreTakenInTheOrderOfTheCpu) {
  Rng rng(6);
  for (const int64_t places : {1, 255, 256, 70000}) {
    const Array some = evaluated(randint(rng, -places, places, {5001})),
                all = evaluated(randint(rng, 0, places, {32769}));
    const Array x = evaluated(randn(rng, {places})), few = evaluated(randn(rng, {5001}));
    const Array many = evaluated(randn(rng, {32769}));
    const std::string what = std::to_string(places) + " places";
    expect_same_bytes([&] { return scatter(x, some, few); }, what);
    expect_same_bytes([&] { return scatter_max(x, some, few); }, what);
    expect_same_bytes([&] { return scatter_add(x, all, many); }, what);
  }
}

// Whose places each have a group: of one tile of updates and more, of one block of lines and more, along each dim.
TEST(KernelScatter, FewPlacesOfManyUpdates) {
  Rng rng(7);
  for (const int64_t updates : {17, 2048, 9001}) {
    const Array at = evaluated(randint(rng, -4, 4, {updates}));
    for (const DType type : {Float32, BFloat16, Int8, Float64}) {
      const Array wide = evaluated(cast(randn(rng, {600, updates}) * 9, type)),
                  tall = evaluated(transpose(slice(wide, 0, 0, 3)));
      const std::string what = std::string(to_string(type)) + " " + std::to_string(updates);
      expect_same_bytes([&] { return scatter_add(slice(wide, 1, 0, 4), at, wide, 1); }, what);
      expect_same_bytes([&] { return scatter_add(zeros({4, 3}, type), at, tall, 0); }, what);
      expect_same_bytes(
          [&] {
            return scatter_add(zeros({3, 4, 2}, type), at,
                               expand(reshape(slice(wide, 0, 0, 3), {3, updates, 1}), {3, updates, 2}), 1);
          },
          what);
    }
    const Array wrong = evaluated(where(eq(arange(updates), updates - 3), 4, at));
    expect_same_error([&] { return scatter_add(zeros({3, 4}), wrong, ones({3, updates}), 1); });
  }
}

TEST(KernelScatter, ManyUpdatesOfEveryTypeAndDim) {
  Rng rng(7);
  const Array at = evaluated(randint(rng, -9, 9, {50, 100})), one = evaluated(reshape(at, {5000}));
  for (const DType type : {Bool, UInt8, Int16, Int64, Float16, BFloat16, Float64, ComplexF32}) {
    for (int dim = 0; dim < 2; ++dim) {
      const Array target = counted(dim == 0 ? Shape{9, 4} : Shape{4, 9}, type);
      const Array updates = counted(dim == 0 ? Shape{5000, 4} : Shape{4, 5000}, type);
      expect_same_bytes([&] { return scatter(target, one, updates, dim); }, to_string(type));
      if (type == Bool || is_complex(type)) continue;
      expect_same_bytes([&] { return scatter_mul(target, one, updates, dim); }, to_string(type));
      expect_same_bytes([&] { return scatter_min(target, one, updates, dim); }, to_string(type));
    }
  }
  const Array x = counted({3, 9}, Float32), updates = counted({3, 50, 100}, Float32);
  expect_same_bytes([&] { return scatter(x, at, updates, 1); });
  expect_same_bytes([&] { return scatter(x, at, expand(slice(updates, 1, 0, 1), {3, 50, 100}), 1); });
}

TEST(KernelScatter, OneWrongIndexAmongManyIsTheErrorOfTheCpu) {
  for (const int64_t bad : {int64_t{9}, int64_t{-10}, int64_t{1} << 40}) {
    const Array at = evaluated(where(eq(arange(5000), 4321), bad, cast(zeros({5000}), Int64)));
    expect_same_error([&] { return scatter(zeros({9}), at, ones({5000})); });
    expect_same_error([&] { return scatter_max(zeros({9}), at, ones({5000})); });
  }
}

// In as many launches as a sort by the bytes that places take, and three; one where each place has a group.
TEST(KernelScatter, LaunchesOfManyUpdates) {
  const auto launches = [](int64_t places, int64_t updates) {
    const Array at = evaluated(zeros({updates}, Int32)), x = evaluated(zeros({places})), y = evaluated(ones({updates}));
    return launches_of([&] { return scatter_add(x, at, y); });
  };
  EXPECT_EQ(launches(100, 32768), 1);
  EXPECT_EQ(launches(10000, 32768), 2);
  EXPECT_EQ(launches(100, 32769), 3 + 3);
  EXPECT_EQ(launches(1000, 32769), 3 + 6);
  EXPECT_EQ(launches(100000, 33000), 3 + 9);
}

TEST(KernelScatter, RepeatedIndicesAddInTheOrderOfTheCpu) {
  Rng rng(5);
  const Array indices = evaluated(randint(rng, 0, 7, {600}));
  for (const DType type : {Float16, BFloat16, Float32, Float64}) {
    const Array updates = evaluated(cast(randn(rng, {3, 600, 2}), type)), target = evaluated(zeros({3, 7, 2}, type));
    expect_same_bytes([&] { return scatter_add(target, indices, updates, 1); }, to_string(type));
    const Array x = evaluated(cast(randn(rng, {3, 7, 2}), type));
    const Array places = evaluated(randint(rng, -7, 7, {3, 50, 2}));
    expect_same_bytes(
        [&] { return gradient([&](const Array& a) { return sum(square(take_along(a, places, 1))); }, x); },
        to_string(type));
  }
}

Array keys(DType type, const Shape& shape, int64_t distinct) {
  Rng rng(static_cast<uint64_t>(shape.count()) + 3);
  return evaluated(cast(randint(rng, -distinct, distinct, shape), type));
}

TEST(KernelSort, PlacesAreThoseOfTheCpuForEveryTypeAndLength) {
  for (const int64_t n : {1, 2, 3, 31, 32, 33, 64, 65, 1000}) {
    for (const DType type : every_type) {
      if (is_complex(type)) continue;
      const Array x = keys(type, {n}, 40);  // many are equal: the sort is stable
      expect_same_bytes([&] { return argsort(x); }, to_string(type));
      expect_same_bytes([&] { return argsort(x, 0, true); }, to_string(type));
    }
  }
  const Array x = keys(Int32, {5000}, 100000);
  expect_same_bytes([&] { return argsort(x); });
  expect_same_bytes([&] { return sort(x, 0, true); });
  expect_same_bytes([] { return argsort(zeros({0, 3})); });
}

TEST(KernelSort, AlongEveryDimAndOfViews) {
  const Array x = keys(Float32, {70, 3, 45}, 30);
  for (int dim = 0; dim < 3; ++dim) {
    expect_same_bytes([&] { return argsort(x, dim); });
    expect_same_bytes([&] { return sort(slice(permute(x, {2, 1, 0}), 0, -1, to_end, -2), dim, true); });
    for (const int64_t k : {0, 1, 3}) {
      expect_same_bytes([&] { return topk(x, k, dim).values; });
      expect_same_bytes([&] { return topk(x, k, dim, false).indices; });
    }
  }
}

TEST(KernelSort, NanIsTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> values;
  for (int i = 0; i < 50; ++i) values.insert(values.end(), {nan, 1, -inf, 0.0f, -0.0f, inf, nan, -3});
  const Array x(values, {400});
  for (const DType type : {Float16, BFloat16, Float32, Float64}) {
    const Array y = evaluated(cast(x, type));
    for (const bool descending : {false, true}) {
      expect_same_bytes([&] { return argsort(y, 0, descending); });
      expect_same_bytes([&] { return argsort(slice(y, 0, 0, 9), 0, descending); });
    }
  }
}

TEST(KernelSort, LargeUnsignedNumbersAreLarge) {
  const Array x(std::vector<uint64_t>{1, ~uint64_t{0}, 0, uint64_t{1} << 63, 5}, {5});
  expect_same_bytes([&] { return argsort(x); });
  expect_same_bytes([&] { return argmax(x); });
}

TEST(KernelSort, SizesAreParametersOfEachWay) {
  for (const auto& [less, more] : {std::pair{20, 100}, {300, 500}, {5000, 6000}, {33000, 70000}}) {
    const Array x = keys(Float32, {less, 2}, 30), y = keys(Float32, {more, 3}, 30);
    expect_same_codes([&](bool larger) { return argsort(larger ? y : x); });
    expect_same_codes([&](bool larger) { return topk(larger ? y : x, larger ? 7 : 2, 0).values; });
  }
}

TEST(KernelSort, ElementsMayBeNumberedInInt64) {
  InterpretedExecutor executor;
  executor.far = true;
  for (const auto& [type, size] : {std::pair{Float32, 100}, {Float64, 300}, {Int32, 5000}, {Float16, 30000}}) {
    const Array x = keys(type, {size, 2}, 1000);
    const Array wanted = evaluated(argsort(x)), got = by_kernels([&] { return argsort(x); }, executor);
    EXPECT_EQ(got.to_vector<int32_t>(), wanted.to_vector<int32_t>()) << size;
  }
}

int64_t launches_of_sort(DType type, int64_t size) {
  const Array x = evaluated(zeros({size}, type));
  return launches_of([&] { return sort(x); });
}

TEST(KernelSort, LongLinesTakeThreeLaunchesAByteOfTheirElements) {
  for (const int64_t size : {1, 128, 129, 2048}) EXPECT_EQ(launches_of_sort(Float32, size), 1) << size;
  EXPECT_EQ(launches_of_sort(Float32, 2049), 2);   // two tiles and a merge
  EXPECT_EQ(launches_of_sort(Float32, 32768), 5);  // 16 tiles, four merges
  EXPECT_EQ(launches_of_sort(Float32, 32769), 12);
  EXPECT_EQ(launches_of_sort(Float32, 1 << 20), 12);
  EXPECT_EQ(launches_of_sort(Bool, 1 << 20), 3);
  EXPECT_EQ(launches_of_sort(UInt8, 1 << 20), 3);
  EXPECT_EQ(launches_of_sort(BFloat16, 1 << 20), 6);
  EXPECT_EQ(launches_of_sort(Int64, 1 << 20), 24);
}

TEST(KernelScan, RunningSumsAndProductsOfIntegersAreExact) {
  for (const int64_t n : {1, 2, 3, 255, 256, 257, 1000, 5000}) {
    for (const DType type : {Int8, Int32, UInt32, Int64, UInt64}) {
      const Array x = keys(type, {n}, 1000);
      expect_same_bytes([&] { return cumsum(x); }, to_string(type));
      expect_same_bytes([&] { return cumprod(x * 2 + 1); }, to_string(type));
    }
  }
  const Array x = keys(Int32, {7, 300, 3}, 50);
  for (int dim = 0; dim < 3; ++dim) expect_same_bytes([&] { return cumsum(x, dim); });
  expect_same_bytes([] { return cumsum(zeros({3, 0, 2}), 1); });
}

/// Two arrays of floats, nearly equal by the size of the numbers.
template <class F> void expect_near(F&& f, double tolerance) {
  const Array wanted = evaluated(f()), got = by_kernels(f);
  ASSERT_EQ(got.shape(), wanted.shape());
  const std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << i;
}

TEST(KernelScan, RunningSumsOfFloatsAndTheirGradients) {
  Rng rng(3);
  for (const DType type : {Float32, Float64, Float16, BFloat16}) {
    const double tolerance = type == Float64 ? 1e-13 : type == Float32 ? 1e-5 : type == Float16 ? 2e-3 : 2e-2;
    for (const int64_t n : {1, 3, 300, 1000}) {
      const Array x = evaluated(cast(randn(rng, {n, 2}), type));
      expect_near([&] { return cumsum(x); }, tolerance);
      expect_near([&] { return cumsum(permute(x, {1, 0}), 1); }, tolerance);
      const auto loss = [](const Array& a) { return sum(square(cumsum(a))); };
      expect_near([&] { return gradient(loss, x); }, tolerance * static_cast<double>(n));
    }
    const Array few = evaluated(cast(randn(rng, {40, 3}), type));
    expect_same_bytes([&] { return cumprod(few, 0); }, to_string(type));
  }
}

TEST(KernelScan, GradientsOfProductsTakeTheRecurrence) {
  Rng rng(4);
  const Array x = evaluated(randn(rng, {6, 5})) * reshape(line({1.0f, 1.0f, 0.0f, 1.0f, 1.0f, 1.0f}), {6, 1});
  const Array known = evaluated(x);
  for (int dim = 0; dim < 2; ++dim) {
    expect_near([&] { return gradient([&](const Array& a) { return sum(square(cumprod(a, dim))); }, known); }, 1e-6);
  }
}

TEST(KernelScan, PlacesOfExtremaAreThoseOfTheCpu) {
  for (const DType type : every_type) {
    if (is_complex(type)) continue;
    for (const Shape& shape : {Shape{1}, Shape{3}, Shape{256}, Shape{257, 2}, Shape{3, 1000}, Shape{5, 4, 3}}) {
      const Array x = keys(type, shape, 60);
      for (int dim = 0; dim < shape.rank(); ++dim) {
        expect_same_bytes([&] { return argmax(x, dim); }, to_string(type));
        expect_same_bytes([&] { return argmin(x, dim); }, to_string(type));
      }
    }
  }
}

TEST(KernelScan, TheFirstNanIsTheExtremum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {9, 600}) {
    std::vector<float> values(static_cast<size_t>(n), 1.0f);
    values[5] = values[8] = nan;
    values[2] = 7;
    const Array x(values, {n});
    expect_same_bytes([&] { return argmax(x); });
    expect_same_bytes([&] { return argmin(x); });
    expect_same_bytes([&] { return argmax(slice(x, 0, 0, 5)); });
  }
}

TEST(KernelScan, SizesAreParameters) {
  const Array x = keys(Float32, {10, 3}, 30), y = keys(Float32, {90, 5}, 30);
  expect_same_codes([&](bool larger) { return cumsum(larger ? y : x); });
  expect_same_codes([&](bool larger) { return argmin(larger ? y : x, 1); });
}

TEST(KernelRandom, ThePublishedKnownAnswersOfPhilox) {
  constexpr uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};  // Random123, kat_vectors
  const std::vector<float> drawn = by_kernels([] {
                                     Rng rng(0);
                                     return uniform(rng, {4}, 0, 1);
                                   }).to_vector<float>();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(drawn[i], static_cast<float>(words[i] >> 8) * 0x1p-24f);
}

TEST(KernelRandom, EveryDrawHasTheBitsOfTheCpu) {
#ifdef __MINGW32__
  GTEST_SKIP() << "fma of MinGW-w64's library, which the interpreter calls, rounds twice";
#endif
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 1000, 5000}) {
    const uint64_t seed = 0xfedcba9876543210u + static_cast<uint64_t>(n);
    Rng again;
    for (const DType type : {Float32, Float64, Float16, BFloat16}) {
      expect_same_bytes([&] { return uniform(again = Rng(seed), {n}, 0, 1, type); }, to_string(type));
      expect_same_bytes([&] { return uniform(again = Rng(seed), {n}, -2, 3, type); }, to_string(type));
      expect_same_bytes([&] { return normal(again = Rng(seed), {n}, 1, 2, type); }, to_string(type));
    }
    expect_same_bytes([&] { return bernoulli(again = Rng(seed), 0.3, {n}); });
    expect_same_bytes([&] { return permutation(again = Rng(seed), n); });
    using Limits = std::numeric_limits<int64_t>;
    for (const auto& [low, high] : {std::pair{int64_t{-7}, int64_t{12}},
                                    {int64_t{5}, int64_t{6}},
                                    {int64_t{-5}, int64_t{1} << 40},
                                    {Limits::min(), Limits::max()}}) {
      expect_same_bytes([&] { return randint(again = Rng(seed), low, high, {n}); });
    }
  }
}

TEST(KernelRandom, DrawsGoOnWhereTheOnesBeforeEnded) {
  const auto second = [] {
    Rng rng(9);
    const Array first = uniform(rng, {5, 3}, 0, 1);
    return uniform(rng, {7, 2}, 0, 1) + reshape(slice(reshape(first, {15}), 0, 0, 14), {7, 2});
  };
  expect_same_bytes(second);
}

TEST(KernelRandom, SizesAndKeysAreParameters) {
  expect_same_codes([](bool larger) {
    Rng rng(larger ? 3 : 4);
    return uniform(rng, {larger ? 70 : 6}, 0, 1);
  });
  expect_same_codes([](bool larger) {
    Rng rng(larger ? 3 : 4);
    return permutation(rng, larger ? 70 : 6);
  });
}

}  // namespace
}  // namespace rosin::kernels
