// Products of integers against sums written out in 64 bits, which wrap around as every smaller type does.
#include "engines/integer_matmul.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <rosin/error.hpp>

#include "engines/vendor_testing.hpp"

namespace rosin::engines {
namespace {

/// Numbers that use all bits of the type.
template <class T> std::vector<T> drawn(int64_t count, uint64_t seed) {
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = static_cast<T>((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 23);
  return numbers;
}

struct Case {
  int64_t m, n, k;
  bool a_transposed, b_transposed, accumulate, bias;
  int64_t gap, batch;
};

template <class T> MatmulSpec spec_of(const Case& c, DType type) {
  MatmulSpec spec;
  spec.type = type;
  spec.m = c.m;
  spec.n = c.n;
  spec.k = c.k;
  spec.batch = c.batch;
  spec.a_transposed = c.a_transposed;
  spec.b_transposed = c.b_transposed;
  spec.accumulate = c.accumulate;
  spec.epilogue.bias = c.bias;
  spec.lda = (c.a_transposed ? c.k : c.m) + c.gap;
  spec.ldb = (c.b_transposed ? c.n : c.k) + c.gap;
  spec.ldc = c.m + c.gap;
  spec.a_batch_stride = spec.lda * (c.a_transposed ? c.m : c.k);
  spec.c_batch_stride = spec.ldc * c.n;  // every item reads the same B
  return spec;
}

template <class T>
void expect_product_of(const Case& c, const MatmulSpec& spec, const std::vector<T>& a, const std::vector<T>& b) {
  const auto bias = drawn<T>(c.m, 2);
  const auto before = drawn<T>(spec.c_batch_stride * c.batch, 4);
  auto wanted = before;
  for (int64_t item = 0; item < c.batch; ++item) {
    for (int64_t j = 0; j < c.n; ++j) {
      for (int64_t i = 0; i < c.m; ++i) {
        T& out = wanted[static_cast<size_t>(item * spec.c_batch_stride + j * spec.ldc + i)];
        auto sum = c.accumulate ? static_cast<uint64_t>(out) : 0;
        if (c.bias) sum += static_cast<uint64_t>(bias[static_cast<size_t>(i)]);
        for (int64_t k = 0; k < c.k; ++k) {
          const int64_t at = item * spec.a_batch_stride + (c.a_transposed ? i * spec.lda + k : k * spec.lda + i);
          const int64_t b_at = c.b_transposed ? k * spec.ldb + j : j * spec.ldb + k;
          sum +=
              static_cast<uint64_t>(a[static_cast<size_t>(at)]) * static_cast<uint64_t>(b[static_cast<size_t>(b_at)]);
        }
        out = static_cast<T>(sum);
      }
    }
  }
  const auto call = prepare_integer_matmul(spec);
  for (const int threads : {1, 2, 3, 7}) {
    auto got = before;
    execute(*call, {a.data(), b.data(), bias.data(), got.data(), nullptr}, threads, threads % 2 == 0);
    EXPECT_EQ(got, wanted) << to_string(spec.type) << ' ' << c.m << " x " << c.n << " x " << c.k << ", threads "
                           << threads;
  }
}

/// The same cut to 32 bits, ends included.
std::vector<int64_t> cut(std::vector<int64_t> numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i % 17 == 0 ? INT32_MIN : i % 17 == 1 ? INT32_MAX : static_cast<int32_t>(numbers[i]);
  }
  return numbers;
}

template <class T> void expect_product(const Case& c, DType type) {
  const MatmulSpec spec = spec_of<T>(c, type);
  const auto a = drawn<T>(spec.a_batch_stride * c.batch, 1), b = drawn<T>(spec.ldb * (c.b_transposed ? c.k : c.n), 3);
  expect_product_of(c, spec, a, b);
}

void expect_products_of_narrow_numbers(const Case& c) {
  const MatmulSpec spec = spec_of<int64_t>(c, Int64);
  auto a = drawn<int64_t>(spec.a_batch_stride * c.batch, 1),
       b = drawn<int64_t>(spec.ldb * (c.b_transposed ? c.k : c.n), 3);
  expect_product_of(c, spec, cut(a), cut(b));
  expect_product_of(c, spec, cut(a), b);
  expect_product_of(c, spec, a, cut(b));
  a = cut(a);
  a.back() = int64_t{1} << 40;
  expect_product_of(c, spec, a, cut(b));
}
void expect_products(const Case& c) {
  expect_product<int8_t>(c, Int8);
  expect_product<uint8_t>(c, UInt8);
  expect_product<int16_t>(c, Int16);
  expect_product<uint16_t>(c, UInt16);
  expect_product<int32_t>(c, Int32);
  expect_product<uint32_t>(c, UInt32);
  expect_product<int64_t>(c, Int64);
  expect_product<uint64_t>(c, UInt64);
}

TEST(IntegerMatmul, OddSizes) {
  for (const int64_t m : {1, 31, 67}) {
    for (const int64_t n : {1, 4, 7}) {
      for (const int64_t k : {1, 5, 257}) expect_products({m, n, k, false, false, false, false, 0, 1});
    }
  }
}

TEST(IntegerMatmul, TransposedOperandsWithGapsAreReadWhereTheyStand) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) expect_products({37, 13, 29, a, b, false, false, 3, 1});
  }
}

TEST(IntegerMatmul, BatchesBiasAndWhatIsThere) {
  expect_products({17, 5, 11, false, false, true, false, 1, 3});
  expect_products({17, 5, 11, true, false, false, true, 0, 3});
  expect_products({17, 5, 11, false, true, true, true, 2, 1});
}

TEST(IntegerMatmul, SumsOfNothingAreZero) {
  expect_products({7, 3, 0, false, false, false, false, 0, 1});
  expect_products({7, 3, 0, false, false, true, true, 0, 1});
  expect_products({0, 3, 5, false, false, false, false, 0, 1});
}

TEST(IntegerMatmul, NumbersOf32BitsThatStandIn64) {
  expect_products_of_narrow_numbers({67, 13, 300, false, false, false, false, 0, 1});
  expect_products_of_narrow_numbers({37, 14, 29, true, true, true, true, 3, 2});
}

TEST(IntegerMatmul, SeveralChunks) { expect_product<int32_t>({211, 199, 61, false, false, false, true, 0, 1}, Int32); }

TEST(IntegerMatmul, OtherTypesAreRefused) {
  EXPECT_THROW(prepare_integer_matmul(spec_of<float>({2, 2, 2, false, false, false, false, 0, 1}, Float32)), Error);
}

}  // namespace
}  // namespace rosin::engines
