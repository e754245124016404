// Tests that the bits of a sum depend on sizes alone: not on threads, and not on what else its kernel computes.
#include "cpu/sum_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

using Floats = std::vector<float>;

const std::vector<Shape> shapes = {
    {10, 128},     {8, 200},       {100, 100},     {3, 70, 50},    {64, 64, 30},    {5000, 7},        {7, 5000},
    {1, 300, 40},  {17, 19, 23},   {4097, 3},      {2, 2, 2, 900}, {33, 31, 5, 6},  {16, 16, 17},     {300, 400},
    {257, 129, 3}, {90, 70, 5, 3}, {61, 77, 9},    {600, 9},       {1000, 6, 5},    {2500, 3, 4},     {3, 1000, 7},
    {65539, 5},    {30011, 2, 3},  {56, 56, 6, 2}, {112, 112, 3},  {14, 14, 21, 3}, {12, 12, 8, 4, 3}};

/// All sets of dims of an array of this rank but the empty one.
std::vector<std::vector<int>> sets_of_dims(int rank) {
  std::vector<std::vector<int>> sets;
  for (unsigned bits = 1; bits < 1u << rank; ++bits) {
    sets.emplace_back();
    for (int d = 0; d < rank; ++d) {
      if (bits >> d & 1) sets.back().push_back(d);
    }
  }
  return sets;
}

Array drawn(const Shape& shape) {
  Rng rng(3);
  const Array x = normal(rng, shape, 0, 1);
  eval(x);
  return x;
}

/// The sum of an elementwise function, so that it is fused.
Array sum_of(const Array& x, const std::vector<int>& dims) { return sum(x * 1.5 + 0.25, Dims(dims)); }

class SumOrderTest : public testing::TestWithParam<Shape> {};

TEST_P(SumOrderTest, CompanyChangesNoBit) {
  const Array x = drawn(GetParam());
  for (const auto& dims : sets_of_dims(x.rank())) {
    const Floats alone = sum_of(x, dims).to_vector();
    for (const auto& others : sets_of_dims(x.rank())) {
      const Array y = x * 1.5 + 0.25;
      const Array beside = sum(y, Dims(others)), of_squares = sum(square(y), Dims(others));
      const Array row_program = y - mean(y, Dims(others)), found = sum(y, Dims(dims));
      eval();
      ASSERT_EQ(found.to_vector(), alone);
    }
  }
}

TEST_P(SumOrderTest, ASumOfRowsIsTheSameWhereTheRowsAreThere) {
  const Array x = drawn(GetParam());
  for (const auto& rows : sets_of_dims(x.rank())) {
    for (const auto& dims : sets_of_dims(x.rank())) {
      const Array fused = sum(maximum(x * 1.5, Dims(rows)) * 0.5, Dims(dims));
      const Floats together = fused.to_vector();
      const Array row = maximum(x * 1.5, Dims(rows));
      eval();
      ASSERT_EQ(sum(row * 0.5, Dims(dims)).to_vector(), together);
    }
  }
}

/// Factors of some dims are one for each run of elements, where those of all would be a number.
TEST_P(SumOrderTest, FactorsOfSomeDimsChangeNoBit) {
  const Array x = drawn(GetParam());
  for (const auto& dims : sets_of_dims(x.rank())) {
    const Floats plain = sum_of(x, dims).to_vector();
    for (const auto& ones : sets_of_dims(x.rank())) {
      const Shape shape = x.shape();
      std::vector<int64_t> sizes(shape.begin(), shape.end());
      for (const int d : ones) sizes[static_cast<size_t>(d)] = 1;
      const Array factors = full(Shape(sizes), 1.5F);
      eval(factors);
      const Array y = x * factors + 0.25, found = sum(y, Dims(dims)), of_squares = sum(y * y, Dims(dims));
      eval();
      ASSERT_EQ(found.to_vector(), plain);
    }
  }
}

TEST_P(SumOrderTest, ThreadsChangeNoBit) {
  const Array x = drawn(GetParam());
  for (const auto& dims : sets_of_dims(x.rank())) {
    set_num_threads(1);
    const Floats expected = sum_of(x, dims).to_vector();
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      ASSERT_EQ(sum_of(x, dims).to_vector(), expected) << threads << " threads";
    }
  }
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SumOrderTest, testing::ValuesIn(shapes));

/// Short lines of an array as it stands, eight strips at a time: their sums wait in room for one strip.
TEST(SumOrder, ShortLinesThatAreApartAreAddedInPieces) {
  for (const Shape& shape : {Shape{2, 8, 4, 284}, Shape{3, 5, 640, 3}, Shape{7, 3, 900, 2}, Shape{2, 4096, 5}}) {
    const Array x = cast(reshape(mod(arange(shape.count()), 13), shape), Float32);
    const std::vector<float> values = x.to_vector();
    const int64_t line = shape[0], kept = shape[1], apart = shape[2];
    std::vector<float> wanted(static_cast<size_t>(shape.count() / line / apart));
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = static_cast<int64_t>(i) / line;
      wanted[static_cast<size_t>(row % kept + row / kept / apart * kept)] += values[i];
    }
    for (int round = 0; round < 3; ++round) EXPECT_EQ(sum(x, {0, 2}).to_vector(), wanted) << to_string(shape);
    EXPECT_EQ(maximum(x, {0, 2}).to_vector(), maximum(x * 1, {0, 2}).to_vector());
  }
}

/// Whole numbers below 7, which every type holds, and so their sums here.
TEST(SumOrder, ColumnsOfEveryTypeAreAddedToTheirResults) {
  for (const Shape& shape :
       {Shape{512, 9}, Shape{4100, 4}, Shape{2049, 3, 2}, Shape{30000, 2}, Shape{70001, 3}, Shape{30000, 16}}) {
    const Array numbers = reshape(mod(arange(shape.count()), 7), shape);
    const std::vector<float> values = cast(numbers, Float32).to_vector();
    std::vector<float> sums(static_cast<size_t>(shape.count() / shape[1])), greatest(sums.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i), row = at / shape[0];
      const auto place = static_cast<size_t>(at % shape[0] + row / shape[1] * shape[0]);
      sums[place] += values[i];
      greatest[place] = std::max(greatest[place], values[i]);
    }
    for (const DType type : {Float16, BFloat16, Float32, Float64, Int32, Int64, UInt8, Int8, Int16}) {
      const Array x = cast(numbers, type);
      eval(x);
      const Array sum_of_all = sum(x, 1), most = maximum(x, 1), twice = sum(x + x, 1);
      EXPECT_EQ(cast(sum_of_all, Float32).to_vector(), sums) << to_string(type) << ' ' << to_string(shape);
      EXPECT_EQ(cast(most, Float32).to_vector(), greatest) << to_string(type) << ' ' << to_string(shape);
      EXPECT_EQ(cast(twice, Float32).to_vector(), (cast(sum_of_all, Float32) * 2).to_vector()) << to_string(type);
    }
  }
}

TEST(SumOrder, PartsOfOneDomainDivideEachOther) {
  const int64_t sizes[] = {13, 77, 900};
  int64_t before = cpu::sum_order(sizes, 1).part;
  for (int64_t results = 1; results < 100000; results *= 3) {
    const cpu::SumOrder order = cpu::sum_order(sizes, results);
    EXPECT_EQ(order.part % order.block, 0);
    EXPECT_EQ(order.part % before, 0);
    EXPECT_GE(order.parts * order.part, 13 * 77 * 900);
    before = order.part;
  }
}

TEST(SumOrder, PartsHoldOneAnotherWhereBlocksStartAnew) {
  const int64_t sizes[] = {90, 700, 11};  // blocks of 990 start anew at multiples of 63000
  std::vector<cpu::SumOrder> orders;
  for (int64_t results = 1; results < 300000; results *= 2) orders.push_back(cpu::sum_order(sizes, results));
  for (size_t k = 0; k < orders.size(); ++k) {
    const cpu::SumOrder& order = orders[k];
    int64_t at = 0;
    for (int64_t p = 0; p < order.parts; ++p) {
      EXPECT_EQ(order.begin(p), at);
      at = order.end(p);
      EXPECT_EQ(order.part_of(order.begin(p)), p);
      EXPECT_EQ(order.part_of(at - 1), p);
      if (k == 0) continue;
      const cpu::SumOrder& smaller = orders[k - 1];
      EXPECT_EQ(order.part_of(smaller.begin(smaller.part_of(order.begin(p)))), p);
    }
    EXPECT_EQ(at, 90 * 700 * 11);
  }
}

}  // namespace
}  // namespace rosin
