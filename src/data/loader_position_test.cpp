// Tests of where a loader is: epochs, seeking and resuming, const and moved-from loaders, loops that are left or
// nested.
#include <rosin/loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Floats = std::vector<float>;

/// 10 numbers with noise, drawn when they are read: batches tell epoch and place.
auto noisy() {
  return mapobs([](const Array& x) { return x + 0.5 * uniform(x.shape()); }, arange(0.0, 10.0, 1.0, Float32));
}
LoaderOptions options(int64_t workers) {
  return {.batchsize = 3, .shuffle = true, .num_workers = workers, .rng = Rng(7)};
}

template <class Loader> std::vector<Floats> one_epoch(const Loader& loader) {
  std::vector<Floats> batches;
  for (const Array& x : loader) batches.push_back(x.to_vector());
  return batches;
}

TEST(LoaderPosition, AResumedLoaderGivesTheBatchesThatTheOtherOneWouldHaveGiven) {
  std::vector<std::vector<Floats>> whole;
  DataLoader reference(noisy(), options(0));
  for (int epoch = 0; epoch < 3; ++epoch) whole.push_back(one_epoch(reference));
  for (int64_t workers : {0, 3}) {
    for (int64_t stop = 1; stop <= 4; ++stop) {
      DataLoader first(noisy(), options(workers));
      one_epoch(first);
      int64_t epoch = 0, batch = 0;
      for (const Array& x : first) {
        EXPECT_EQ(x.to_vector(), whole[1][static_cast<size_t>(first.batch()) - 1]);
        epoch = first.epoch(), batch = first.batch();
        if (batch == stop) break;
      }
      DataLoader second(noisy(), options(workers));
      second.seek(epoch, batch);
      std::vector<Floats> seen;
      while (second.epoch() < 3) {
        for (const Array& x : second) seen.push_back(x.to_vector());
      }
      std::vector<Floats> expected(whole[1].begin() + stop, whole[1].end());
      expected.insert(expected.end(), whole[2].begin(), whole[2].end());
      EXPECT_EQ(seen, expected) << workers << " workers, stopped after batch " << stop;
    }
  }
}

TEST(LoaderPosition, CountsEpochsAndTheBatchesOfTheLoop) {
  DataLoader loader(arange(10), {.batchsize = 4});
  std::vector<std::pair<int64_t, int64_t>> places;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(loader.epoch(), i);
    EXPECT_EQ(loader.batch(), 0);
    for (const Array& x : loader) {
      EXPECT_GT(x.count(), 0);
      places.emplace_back(loader.epoch(), loader.batch());
    }
  }
  EXPECT_EQ(places, (std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}}));
  EXPECT_EQ(loader.epoch(), 2);
}

TEST(LoaderPosition, BeginAloneBeginsNoEpoch) {
  DataLoader loader(noisy(), options(0));
  const std::vector<Floats> first = one_epoch(DataLoader(noisy(), options(0)));
  { auto unused = loader.begin(); }
  EXPECT_EQ(loader.begin() == loader.end(), false);
  EXPECT_EQ(loader.epoch(), 0);
  EXPECT_EQ(one_epoch(loader), first);
}

TEST(LoaderPosition, ALoopThatIsLeftHasHadItsEpoch) {
  DataLoader loader(noisy(), options(3)), whole(noisy(), options(0));
  one_epoch(whole);
  for (const Array& x : loader) {
    EXPECT_EQ(x.count(), 3);
    break;
  }
  EXPECT_EQ(loader.epoch(), 1);
  EXPECT_EQ(loader.batch(), 0);
  EXPECT_EQ(one_epoch(loader), one_epoch(whole));
}

TEST(LoaderPosition, NestedLoopsAreDifferentEpochs) {
  DataLoader loader(arange(4), {.batchsize = 2});
  std::vector<int64_t> epochs;
  for (const Array& outer : loader) {
    EXPECT_EQ(outer.count(), 2);
    epochs.push_back(loader.epoch());
    for (const Array& inner : loader) epochs.push_back(loader.epoch() + 0 * inner.count());
  }
  EXPECT_EQ(epochs, (std::vector<int64_t>{0, 1, 1, 0, 2, 2}));
  EXPECT_EQ(loader.epoch(), 3);
}

TEST(LoaderPosition, SeekSaysWhereTheNextLoopBegins) {
  DataLoader loader(arange(10), {.batchsize = 4});
  const auto read = [&] {
    std::vector<int> seen;
    for (const Array& x : loader) seen.push_back(x.to_vector<int>()[0]);
    return seen;
  };
  loader.seek(5, 2);
  EXPECT_EQ(loader.epoch(), 5);
  EXPECT_EQ(loader.batch(), 2);
  EXPECT_EQ(read(), (std::vector<int>{8}));
  EXPECT_EQ(loader.epoch(), 6);
  EXPECT_EQ(read(), (std::vector<int>{0, 4, 8}));
  loader.seek(1, 3);  // after the last batch: nothing is left of the epoch, and what follows its loop follows
  EXPECT_EQ(loader.epoch(), 1);
  EXPECT_EQ(loader.batch(), 3);
  EXPECT_EQ(read(), std::vector<int>());
  EXPECT_EQ(loader.epoch(), 2);
  EXPECT_EQ(loader.batch(), 0);
  for (const Array& x : loader) {
    EXPECT_EQ(x.count(), 4);
    loader.seek(0, 1);  // in a loop: for the next one
    break;
  }
  EXPECT_EQ(loader.epoch(), 0);
  EXPECT_EQ(read(), (std::vector<int>{4, 8}));
  EXPECT_EQ(
      error_of([&] { loader.seek(0, 4); }, ErrorKind::argument),
      "seek: epochs count from 0 and batches up to the 3 of an epoch; got epoch 0, batch 4; give what epoch() and "
      "batch() were for the same data and batch size");
  EXPECT_THROW(loader.seek(-1), Error);
}

TEST(LoaderPosition, LoopsOverNoBatchesEnd) {
  DataLoader loader(zeros({2, 0}), {.batchsize = 4});
  while (loader.epoch() < 3) {
    for (const Array& x : loader) FAIL() << to_string(x);
  }
  EXPECT_EQ(loader.epoch(), 3);
}

TEST(LoaderPosition, ALoaderThatIsMovedToADeviceInEveryEpochGoesOn) {
  DataLoader loader(noisy(), options(0)), plain(noisy(), options(0));
  for (int epoch = 0; epoch < 3; ++epoch) {
    const std::vector<Floats> expected = one_epoch(plain);
    EXPECT_EQ(one_epoch(loader | cpu_device()), expected);
    EXPECT_EQ(loader.epoch(), epoch + 1);
  }
  auto moved = loader | cpu_device();
  one_epoch(loader);
  EXPECT_EQ(moved.epoch(), 3);
  EXPECT_EQ(one_epoch(moved), one_epoch(plain));
  EXPECT_EQ(loader.epoch(), 4);
}

TEST(LoaderPosition, ACopyOfALoaderGoesItsOwnWay) {
  DataLoader loader(noisy(), options(0));
  one_epoch(loader);
  DataLoader copy = loader;
  const std::vector<Floats> second = one_epoch(loader);
  EXPECT_EQ(copy.epoch(), 1);
  EXPECT_EQ(one_epoch(copy), second);
}

TEST(LoaderPosition, TwoLoadersOfOneAugmentationDrawDifferently) {
  const DataLoader one(noisy(), {.batchsize = 10}), two(noisy(), {.batchsize = 10});
  EXPECT_NE(one_epoch(one), one_epoch(two));
}

TEST(LoaderPosition, PrintingDrawsNothing) {
  seed(1);
  const DataLoader loader(noisy(), {.batchsize = 10});
  const Rng before = default_rng();
  to_string(loader);
  EXPECT_EQ(default_rng(), before);
}

TEST(LoaderPosition, ConstLoadersAndReferencesCompile) {
  const DataLoader loader(std::tuple{arange(6), ones({2, 6})}, {.batchsize = 4});
  std::vector<int64_t> sizes;
  for (auto& [x, y] : loader) sizes.push_back(x.count() + y.size(0));
  for (const auto& [x, y] : loader) sizes.push_back(x.count() + y.size(0));
  for (auto&& [x, y] : loader) sizes.push_back(x.count() + y.size(0));
  for (auto [x, y] : loader) sizes.push_back(x.count() + y.size(0));
  const DeviceIterator there(cpu_device(), loader);
  for (auto& [x, y] : there) sizes.push_back(x.count() + y.size(0));
  EXPECT_EQ(sizes, (std::vector<int64_t>{6, 4, 6, 4, 6, 4, 6, 4, 6, 4}));
  EXPECT_EQ(loader.epoch(), 5);
}

TEST(LoaderPosition, ABatchIsMadeOnceHoweverOftenItIsLookedAt) {
  int calls = 0;
  const auto counted = mapobs(
      [&](const Array& x) {
        ++calls;
        return x;
      },
      arange(4));
  const DataLoader loader(counted, {.batchsize = 2});
  auto it = loader.begin();
  EXPECT_TRUE(same(*it, *it));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loader.stats().batches, 1);
}

TEST(LoaderPosition, SeveralThreadsGoThroughOneConstLoader) {
  const DataLoader loader(noisy(), options(0));
  std::vector<std::vector<Floats>> seen(4);
  std::vector<std::thread> threads;
  for (std::vector<Floats>& mine : seen) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) {
        for (Floats& x : one_epoch(loader)) mine.push_back(std::move(x));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : seen) {
    ASSERT_EQ(mine.size(), 12u);
    std::vector<int> values;
    for (size_t batch = 0; batch < 4; ++batch) {
      for (float value : mine[batch]) values.push_back(static_cast<int>(value));
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(LoaderPosition, ALoaderThatWasMovedFromSaysSo) {
  DataLoader from(arange(50), {.batchsize = 16});
  const auto to = std::move(from);
  EXPECT_EQ(to.size(), 4);
  const char* const text =
      "DataLoader: a loader that was moved from has no data; got one; use the loader that it was moved to";
  EXPECT_EQ(error_of([&] { from.size(); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of(
                [&] {
                  for (const Array& x : from) ADD_FAILURE() << to_string(x);
                },
                ErrorKind::argument),
            text);
  EXPECT_EQ(error_of([&] { from.data(); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of([&] { from.epoch(); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of([&] { from.seek(0); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of([&] { from | cpu_device(); }, ErrorKind::argument), text);
  EXPECT_EQ(error_of([&] { to_string(from); }, ErrorKind::argument), text);
  from = DataLoader(arange(4), {.batchsize = 4});
  EXPECT_EQ(from.size(), 1);
}

}  // namespace
}  // namespace rosin
