// Tests of views of observations: what selects, splits, shuffles or maps reads nothing before it is read itself.
#include <rosin/loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Ints = std::vector<int>;

/// Observation i is (i, i, i, i); says how many were read.
struct Lazy {
  std::atomic<int>* reads;
  int64_t n = 1000;
  int64_t numobs() const { return n; }
  Array getobs(int64_t i) const {
    ++*reads;
    return full({4}, static_cast<float>(i));
  }
};

/// Words of i + 1 letters, padded to the longest of their batch.
struct Padded {
  int64_t numobs() const { return 6; }
  Array getobs(std::span<const int64_t> at) const {
    const int64_t longest = *std::max_element(at.begin(), at.end()) + 1;
    return zeros({longest, static_cast<int64_t>(at.size())});
  }
};

Array pairs() { return reshape(arange(10), {2, 5}); }

TEST(Views, ReadNothingBeforeTheyAreRead) {
  std::atomic<int> reads = 0;
  const Lazy data{&reads};
  const auto [a, b] = splitobs(data, {.at = 0.9});
  const auto [c, d] = splitobs(data, {.at = 0.9, .shuffle = true});
  const auto [e, f, g] = splitobs(data, std::array{0.5, 0.25});
  const auto shuffled = shuffleobs(data);
  const auto some = obsview(shuffleobs(splitobs(data, {.at = 0.5}).first), {3, 1});
  const auto mapped = shuffleobs(mapobs([](const Array& x) { return x + 1; }, obsview(data, {5, 6})));
  DataLoader loader(shuffled, {.batchsize = 10});
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(numobs(a) + numobs(b) + numobs(c) + numobs(d) + numobs(e) + numobs(f) + numobs(g), 3000);
  EXPECT_EQ(numobs(some) + numobs(mapped), 4);
  getobs(b, {0, 99});
  EXPECT_EQ(reads, 2);
  for (const Array& x : loader) {
    EXPECT_EQ(x.shape(), (Shape{4, 10}));
    break;
  }
  EXPECT_EQ(reads, 12);
}

TEST(Views, OfViewsComposeTheirIndices) {
  std::atomic<int> reads = 0;
  const auto view = obsview(obsview(Lazy{&reads, 10}, {9, 7, 5, 3}), {3, 3, 0});
  static_assert(std::is_same_v<decltype(view), const ObsView<Lazy>>);
  EXPECT_EQ(view.indices(), (std::vector<int64_t>{3, 3, 9}));
  EXPECT_EQ(getobs(view, {2, 0}).to_vector<int>(), (Ints{9, 9, 9, 9, 3, 3, 3, 3}));
  EXPECT_EQ(reads, 2);
  const auto [first, second] = splitobs(shuffleobs(obsview(pairs(), {1, 2, 3, 4})), {.at = 0.5});
  Ints seen = getobs(first).to_vector<int>();
  for (int value : getobs(second).to_vector<int>()) seen.push_back(value);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (Ints{2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Views, OfAnAugmentationDrawAnewInEveryEpoch) {
  int calls = 0;
  const auto noisy = mapobs(
      [&](const Array& x) {
        ++calls;
        return x + uniform(x.shape());
      },
      zeros({1, 8}));
  const auto [train, test] = splitobs(noisy, {.at = 0.5, .shuffle = true});
  EXPECT_EQ(calls, 0);
  DataLoader loader(train, {.batchsize = 2});
  std::set<float> values;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Array& x : loader) {
      for (float value : x.to_vector()) values.insert(value);
    }
  }
  EXPECT_EQ(values.size(), 12u);
  EXPECT_EQ(calls, 6);
}

TEST(Views, OfBatchesThatArePaddedPadEachBatchAlone) {
  const auto [train, test] = splitobs(Padded{}, {.at = 0.5});
  DataLoader loader(train, {.batchsize = 1});
  std::vector<int64_t> lengths;
  for (const Array& x : loader) lengths.push_back(x.size(0));
  EXPECT_EQ(lengths, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(getobs(test, {0, 1}).shape(), (Shape{5, 2}));
}

TEST(Views, OfArraysBecomeArraysWhereTheyAreUsed) {
  const auto view = obsview(pairs(), {4, 0});
  const Array x = view;
  EXPECT_EQ(x.to_vector<int>(), (Ints{8, 9, 0, 1}));
  EXPECT_EQ((view + 1).to_vector<int>(), (Ints{9, 10, 1, 2}));
  EXPECT_EQ((view | cpu_device()).shape(), (Shape{2, 2}));
  const auto [features, labels] = obsview(std::tuple{pairs(), arange(5)}, {1, 3});
  EXPECT_EQ(features.to_vector<int>(), (Ints{2, 3, 6, 7}));
  EXPECT_EQ(labels.to_vector<int>(), (Ints{1, 3}));
}

TEST(Views, SplitIntoSeveralPartsThatLeaveNothingOut) {
  const auto [train, valid, test] = splitobs(arange(10), std::array{0.7, 0.2});
  EXPECT_EQ(getobs(train).to_vector<int>(), (Ints{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(getobs(valid).to_vector<int>(), (Ints{7, 8}));
  EXPECT_EQ(getobs(test).to_vector<int>(), (Ints{9}));
  const auto [a, b, c, none] = splitobs(arange(10), std::array{0.1, 0.7, 0.2});  // their sum is not quite 1
  EXPECT_EQ(numobs(a) + numobs(b) + numobs(c), 10);
  EXPECT_EQ(numobs(none), 0);
  EXPECT_EQ(getobs(none).shape(), (Shape{0}));
  EXPECT_EQ(
      error_of(
          [] {
            splitobs(arange(10), std::array{0.7, 0.4});
          },
          ErrorKind::argument),
      "splitobs: the shares of the parts must lie between 0 and 1 and their sum must not be above 1; got 0.4 with "
      "the sum 1.1; write {.at = 0.8} for four fifths in the first part");
}

TEST(Views, RefuseIndicesThatTheDataDoesNotHave) {
  EXPECT_EQ(error_of(
                [] {
                  obsview(pairs(), {0, 5});
                },
                ErrorKind::argument),
            "getobs: observation 5 is out of range; there are 5, counted from 0");
  EXPECT_EQ(error_of(
                [] {
                  obsview(obsview(pairs(), {0, 1}), {2});
                },
                ErrorKind::argument),
            "getobs: observation 2 is out of range; there are 2, counted from 0");
  EXPECT_EQ(error_of(
                [] {
                  getobs(obsview(pairs(), {0, 1}), {-1});
                },
                ErrorKind::argument),
            "getobs: observation -1 is out of range; there are 2, counted from 0");
}

TEST(Views, GiveTheSameBatchesWithWorkers) {
  std::atomic<int> reads = 0;
  const auto noisy = mapobs([](const Array& x) { return x + uniform(x.shape()); }, Lazy{&reads, 40});
  Rng rng(3);
  const auto view = obsview(shuffleobs(noisy, rng), {1, 2, 3, 5, 7, 11, 13, 17, 19, 23});
  std::vector<std::vector<float>> runs;
  for (int64_t workers : {0, 3}) {
    DataLoader loader(view, {.batchsize = 4, .shuffle = true, .num_workers = workers, .rng = Rng(2)});
    std::vector<float>& run = runs.emplace_back();
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const Array& x : loader) {
        for (float value : x.to_vector()) run.push_back(value);
      }
    }
  }
  EXPECT_EQ(runs[0].size(), 80u);
  EXPECT_EQ(runs[1], runs[0]);
}

}  // namespace
}  // namespace rosin
