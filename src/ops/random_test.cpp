// Random arrays: known answers of Philox through draws, moments, bounds, and independence of chunks and threads.
#include <rosin/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <set>
#include <thread>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/reduce.hpp>

#include "base/philox.hpp"

namespace rosin {
namespace {

TEST(Random, DrawsAreTheWordsOfPhiloxInOrder) {
  Rng rng(0);
  // Known answer of Philox4x32-10 for key 0 and counter 0 (Random123, kat_vectors).
  const uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const std::vector<float> numbers = rand(rng, {4}).to_vector();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(numbers[i], static_cast<float>(words[i] >> 8) * 0x1p-24f);
  EXPECT_EQ(rng.counter(), 1u);
}

TEST(Random, AnElementDoesNotDependOnTheDrawsSize) {
  Rng first(5), second(5);
  const std::vector<float> small = rand(first, {1000}).to_vector(), large = rand(second, {100000}).to_vector();
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(Random, DrawsAreRecordedWithTheirPlace) {
  Rng rng(3);
  const Array a = rand(rng, {6}), b = rand(rng, {6});
  const Rng later = rng;
  const std::vector<float> second = b.to_vector(), first = a.to_vector();
  EXPECT_NE(first, second);
  Rng again(3);
  EXPECT_EQ(rand(again, {6}).to_vector(), first);
  EXPECT_EQ(rand(again, {6}).to_vector(), second);
  EXPECT_EQ(again, later);
}

TEST(Random, MomentsAreThoseOfTheDistribution) {
  Rng rng(1);
  constexpr int64_t n = 200000;
  const Array u = uniform(rng, {n}, -1, 3);
  EXPECT_NEAR(mean(u).item(), 1, 0.02);
  EXPECT_NEAR(var(u).item(), 16.0 / 12, 0.02);
  EXPECT_GE(minimum(u).item(), -1);
  EXPECT_LT(maximum(u).item(), 3);
  const Array z = normal(rng, {n}, 2, 0.5);
  EXPECT_NEAR(mean(z).item(), 2, 0.01);
  EXPECT_NEAR(stddev(z).item(), 0.5, 0.01);
  const Array wide = randn<double>(rng, {n});
  EXPECT_EQ(wide.dtype(), Float64);
  EXPECT_NEAR(mean(wide).item(), 0, 0.01);
  EXPECT_NEAR(stddev(wide).item(), 1, 0.01);
  EXPECT_NEAR(mean(bernoulli(rng, 0.3, {n})).item(), 0.3, 0.005);
}

TEST(Random, NormalNumbersAreRadiusTimesCosineOfTwoDraws) {
  Rng first(7), second(7);
  constexpr int64_t n = 10000;
  const std::vector<float> u = rand(first, {n}).to_vector(), v = rand(first, {n}).to_vector();
  const std::vector<float> z = randn(second, {n}).to_vector();
  for (size_t i = 0; i < z.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log1p(-double{u[i]}));
    ASSERT_NEAR(z[i], radius * std::cos(2 * std::numbers::pi * v[i]), 2e-7 * radius) << i;
  }
}

TEST(Random, HalvesAreBelowOne) {
  for (const DType type : {Float16, BFloat16}) {
    const Array x = cast(uniform({1 << 18}, 0, 1, type), Float32);
    EXPECT_LT(maximum(x).item(), 1);
    EXPECT_GT(maximum(x).item(), 0.99);
    EXPECT_EQ(minimum(x).item(), 0);
    EXPECT_NEAR(mean(x).item(), 0.5, 0.01);
  }
}

TEST(Random, IntegersReachBothEndsOfTheirRange) {
  Rng rng(2);
  const std::vector<int32_t> dice = randint(rng, -3, 4, {10000}).to_vector<int32_t>();
  EXPECT_EQ(*std::min_element(dice.begin(), dice.end()), -3);
  EXPECT_EQ(*std::max_element(dice.begin(), dice.end()), 3);
  EXPECT_EQ(randint(rng, 0, int64_t{1} << 40, {3}).dtype(), Int64);
  EXPECT_THROW(randint(rng, 2, 2, {1}), Error);
}

TEST(Random, PermutationsHoldEveryNumberOnce) {
  Rng rng(9);
  std::vector<int32_t> order = permutation(rng, 1000).to_vector<int32_t>();
  EXPECT_NE(order, permutation(rng, 1000).to_vector<int32_t>());
  std::sort(order.begin(), order.end());
  for (int32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Random, PermutationsAreEquallyLikely) {
  Rng rng(11);
  std::map<std::vector<int32_t>, int> seen;
  constexpr int draws = 6000;
  for (int i = 0; i < draws; ++i) ++seen[permutation(rng, 3).to_vector<int32_t>()];
  ASSERT_EQ(seen.size(), 6u);
  double chi_square = 0;
  for (const auto& [order, count] : seen) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 20.5);  // the 0.999 quantile with five degrees of freedom
}

TEST(Random, TheSeedRestartsThisThreadAndNumbersTheOthers) {
  seed(42);
  const std::vector<float> first = rand({5}).to_vector();
  Rng rng(42);
  EXPECT_EQ(rand(rng, {5}).to_vector(), first);
  std::vector<float> other;
  std::thread([&] { other = rand({5}).to_vector(); }).join();
  EXPECT_NE(other, first);
  Rng expected(philox::bits_at(42, 1, philox::Purpose::thread));
  EXPECT_EQ(rand(expected, {5}).to_vector(), other);
  seed(42);
  EXPECT_EQ(rand({5}).to_vector(), first);
}

TEST(Random, SplitGeneratorsDiffer) {
  Rng rng(42);
  Rng child = rng.split(), other = rng.split();
  EXPECT_NE(child.key(), other.key());
  EXPECT_NE(child.key(), rng.key());
  EXPECT_EQ(rng.derive(7).key(), Rng::restored(42, 99).derive(7).key());
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.below(10));
  EXPECT_EQ(seen.size(), 10u);
}

}  // namespace
}  // namespace rosin
