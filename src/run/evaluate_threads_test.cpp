// Tests of pending arrays that threads hand to each other: each has its value wherever and whenever it is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"

namespace rosin {
namespace {

TEST(HandedOver, APendingArrayComesBackFromAThreadThatHasEnded) {
  const Array here = ones({3}) * 2;
  Array there;
  std::thread([&] { there = relu(here); }).join();
  EXPECT_EQ(sum(there + 1).item(), 9);
}

TEST(HandedOver, APendingArrayComesBackFromAThreadThatGoesOn) {
  const Array here = ones({3}) * 2;
  Array there;
  std::barrier turn(2);
  std::thread other([&] {
    there = relu(here);
    turn.arrive_and_wait();
    turn.arrive_and_wait();  // the other one has read
    EXPECT_EQ(there.item(1), 2);
  });
  turn.arrive_and_wait();
  EXPECT_EQ(sum(there + 1).item(), 9);
  turn.arrive_and_wait();
  other.join();
}

TEST(HandedOver, AChainBetweenTwoThreadsMayBeOfAnyLength) {
  constexpr int rounds = 3000;
  Array x = ones({2});
  std::barrier turn(2);
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      turn.arrive_and_wait();
      x = x + 1;
      turn.arrive_and_wait();
    }
    turn.arrive_and_wait();  // its context lives until all is read
  });
  for (int i = 0; i < rounds; ++i) {
    x = x + 1;
    turn.arrive_and_wait();
    turn.arrive_and_wait();
  }
  EXPECT_EQ(x.item(0), 1 + 2 * rounds);
  turn.arrive_and_wait();
  other.join();
}

TEST(HandedOver, EachLinkOfAChainMayBeOfAThreadOfItsOwn) {
  Array x = ones({2});
  for (int i = 0; i < 200; ++i) {
    std::thread([&] { x = x + 1; }).join();
    x = x * 1;
  }
  EXPECT_EQ(x.item(0), 201);
}

TEST(HandedOver, TwoThreadsMayReadWhatTheyMadeOfEachOthersArrays) {
  for (int round = 0; round < 200; ++round) {
    Array a[2], b[2];
    double read[2] = {};
    std::barrier turn(2);
    const auto work = [&](int me) {
      a[me] = full({20}, me + 1) * 2;
      turn.arrive_and_wait();
      b[me] = a[1 - me] + a[me];
      turn.arrive_and_wait();
      read[me] = sum(b[1 - me] * b[me] + a[me]).item();
      if (round % 2 == 1) turn.arrive_and_wait();  // neither ends before both have read
    };
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
    EXPECT_EQ(read[0], 20 * (36 + 2));
    EXPECT_EQ(read[1], 20 * (36 + 4));
  }
}

/// Arrays with the value that all their elements must have, for any thread to take and to replace.
class Board {
 public:
  struct Entry {
    Array array;
    float value = 0;
  };
  static constexpr size_t places = 24;

  Board() {
    for (Entry& entry : entries_) entry = {zeros({5}), 0};
  }
  Entry take(size_t place) {
    const std::lock_guard lock(lock_);
    return entries_[place];
  }
  void put(size_t place, Entry entry) {
    const std::lock_guard lock(lock_);
    std::swap(entries_[place], entry);
  }

 private:
  std::mutex lock_;
  Entry entries_[places];
};

/// One thing that a thread may do with arrays of others; whether it found what it should.
bool exchange(Board& board, std::mt19937& draw) {
  const Board::Entry a = board.take(draw() % Board::places), b = board.take(draw() % Board::places);
  const size_t place = draw() % Board::places;
  switch (draw() % 8) {
    case 0: return a.array.item(static_cast<int>(draw() % 5)) == a.value;
    case 1: return sum(a.array + b.array).item() == 5 * (a.value + b.value);
    case 2: eval(); return true;
    case 3: board.put(place, {a.array - b.array, a.value - b.value}); return true;
    case 4: board.put(place, {full({5}, 3.0f) * 2, 6}); return true;
    case 5: {  // what lies between is held by nobody
      const Array inner = min(a.array, 100);
      board.put(place,
                {max(inner, b.array * 0) + inner, std::max(std::min(a.value, 100.f), 0.f) + std::min(a.value, 100.f)});
      return true;
    }
    default: board.put(place, {max(a.array, b.array) + 1, std::max(a.value, b.value) + 1}); return true;
  }
}

TEST(HandedOver, ManyThreadsExchangePendingArraysAtRandom) {
  Board board;
  std::atomic<int> wrong{0};
  for (int generation = 0; generation < 4; ++generation) {  // contexts of ended threads pass to new ones
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, seed = generation * 100 + t] {
        std::mt19937 draw(static_cast<unsigned>(seed));
        for (int i = 0; i < 400; ++i) wrong += !exchange(board, draw);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (size_t place = 0; place < Board::places; ++place) {
    const Board::Entry entry = board.take(place);
    wrong += entry.array.to_vector() != std::vector<float>(5, entry.value);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(HandedOver, WhatCannotBeComputedStopsOnlyWhoNeedsIt) {
  const Array good = ones({3}) * 2;
  Array bad, mixed;
  std::thread([&] {
    bad = gather(ones({3}), Array({9}, {1}));
    mixed = bad + 1;
  }).join();
  const Array needs = mixed * 2, free = good + 1;
  EXPECT_THROW(needs.item(0), Error);
  EXPECT_EQ(free.item(0), 3);
  EXPECT_THROW(bad.item(0), Error);
}

TEST(HandedOver, WhatAThreadLeavesBehindIsNoErrorOfTheNextOne) {
  Array bad, good;
  std::thread([&] {
    bad = gather(ones({3}), Array({9}, {1}));
    good = ones({3}) * 2;
  }).join();
  std::thread([] {  // takes over what the first one recorded with
    const Array own = ones({2}) * 3;
    eval();
    EXPECT_TRUE(own.node()->ready());
    eval();
  })
      .join();
  EXPECT_EQ(good.item(0), 2);
  EXPECT_THROW(bad.item(0), Error);
}

TEST(HandedOver, AGradientCallUsesPendingArraysOfOthers) {
  const Array here = ones({3}) * 2;
  Array there;
  std::thread([&] { there = here * 3; }).join();
  const Array g = gradient([&](const Array& x) { return sum(x * x * there * here); }, ones({3}));
  EXPECT_EQ(g.to_vector(), (std::vector<float>{24, 24, 24}));
}

}  // namespace
}  // namespace rosin
