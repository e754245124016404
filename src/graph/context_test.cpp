// Tests of nodes and contexts: counts, threads that come and go, memory.
#include "graph/context.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/sanitizer_testing.hpp"

namespace rosin {
namespace {

/// Bytes of this process that are in memory.
int64_t resident_bytes() {
  long long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  EXPECT_EQ(std::fscanf(file, "%lld %lld", &pages, &resident), 2);
  std::fclose(file);
  return static_cast<int64_t>(resident) * sysconf(_SC_PAGESIZE);
}

TEST(Context, HandlesAreUsersAndOperandsAreReferences) {
  Array x = ones({3});
  EXPECT_EQ(x.node()->users(), 1u);
  EXPECT_EQ(x.node()->references(), 0u);
  const Array copy = x;
  Array y = x * x;
  EXPECT_EQ(x.node()->users(), 2u);
  EXPECT_EQ(x.node()->references(), 2u);
  EXPECT_EQ(y.node()->users(), 1u);
  y = Array();
  EXPECT_EQ(x.node()->references(), 0u);
}

TEST(Context, AnEvaluatedNodeDropsItsOperands) {
  const Array x = ones({3});
  const Array y = x + 1;
  EXPECT_EQ(x.node()->references(), 1u);
  eval(y);
  EXPECT_EQ(x.node()->references(), 0u);
}

TEST(Context, SeveralArraysAreComputedByOneCall) {
  const Array x = ones({3});
  Array made[3];  // each pending on a thread of its own, so that none is computed because another one is
  for (Array& y : made) std::thread([&] { y = x + 1; }).join();
  eval(made[0], made[1], made[2]);
  for (const Array& y : made) EXPECT_TRUE(y.node()->ready());
}

TEST(Context, PendingNodesThatNobodyHoldsLeaveTheList) {
  eval();
  const int64_t before = Context::current().pending_count();
  {
    Array x = ones({3});
    for (int i = 0; i < 100; ++i) x = x + 1;
    EXPECT_GE(Context::current().pending_count(), before + 100);
  }
  EXPECT_EQ(Context::current().pending_count(), before);
}

TEST(Context, AChainOfAMillionNodesEndsWithoutRecursion) {
  const Array x = ones({1});
  detail::GradientCall call;  // inside one nothing is evaluated by itself
  Array sum = x;
  for (int i = 0; i < 1000000; ++i) sum = sum + x;
  sum = Array();
  EXPECT_EQ(x.node()->references(), 0u);
}

TEST(Context, AHandleOutlivesTheThreadThatRecordedIt) {
  Array ready, pending;
  std::thread([&] {
    const Array x({1.0f, 2.0f}, {2});
    ready = x * 2;
    eval(ready);
    pending = x + 5;
  }).join();
  EXPECT_EQ(ready.to_vector(), (std::vector<float>{2, 4}));
  EXPECT_EQ(pending.to_vector(), (std::vector<float>{6, 7}));
  EXPECT_EQ((pending + ready).to_vector(), (std::vector<float>{8, 11}));
}

TEST(Context, WhatAThreadLeavesBehindIsReadAndDroppedInAnyOrder) {
  for (int round = 0; round < 100; ++round) {
    Array shared, twice, thrice, more;
    std::thread([&] {
      const Array x = full({4}, round);
      shared = x + 1;
      twice = shared * 2;
      thrice = shared * 3;
    }).join();
    std::latch start(3);
    std::thread drops([&] {
      start.arrive_and_wait();
      twice = Array();
    });
    std::thread reads([&] {
      start.arrive_and_wait();
      EXPECT_EQ(thrice.item(0), 3.0 * (round + 1));
      thrice = Array();
    });
    std::thread records([&] {  // one of the three takes over what the first thread has left
      start.arrive_and_wait();
      more = shared + 5;
      eval(more);
    });
    for (std::thread* thread : {&drops, &reads, &records}) thread->join();
    EXPECT_EQ(more.item(2), round + 6);
    EXPECT_EQ(shared.item(3), round + 1);
    EXPECT_EQ(shared.node()->references(), 0u);
  }
}

TEST(Context, ANodeThatAnotherThreadDroppedLastEndsWithTheNextEvaluation) {
  const Array x = ones({3});
  Array y = x + 1;
  const int64_t before = Context::current().pending_count();
  std::thread([&] { y = Array(); }).join();
  EXPECT_EQ(Context::current().pending_count(), before);
  eval();
  EXPECT_EQ(Context::current().pending_count(), 0);
  EXPECT_EQ(x.node()->references(), 0u);
}

TEST(Context, ThreadsThatLeavePendingNodesBehindDoNotAddUp) {
  const auto leave = [](Array* held) {
    std::thread([held] {
      thread_local Array late;  // made before the thread's first array and destroyed after its context has gone
      late = Array();
      const Array x = full({1000}, 2);
      Array dropped = x * 3;
      late = x + 4;
      *held = late * x;
    }).join();
  };
  Array held;
  for (int i = 0; i < 50; ++i) leave(&held);
  held = Array();
  eval();
  const int64_t bytes = stats().live_bytes, resident = resident_bytes();
  for (int i = 0; i < 1000; ++i) {
    leave(&held);
    if (i % 10 == 0) {
      ASSERT_EQ(held.item(7), 12);
    }
  }
  held = Array();
  eval();
  EXPECT_LE(stats().live_bytes, bytes + 16 * 4096);
  if (counts_memory) {
    EXPECT_LE(resident_bytes(), resident + (4 << 20));
  }
}

TEST(Context, NodesComeInTheOrderOfTheirAddressesHoweverTheyWereFreed) {
  constexpr int count = 20000;
  const Array x = ones({1});
  const auto in_order = [&](const std::vector<Array>& arrays) {
    int neighbours = 0;
    for (size_t i = 1; i < arrays.size(); ++i) neighbours += arrays[i].node() == arrays[i - 1].node() + 1;
    return neighbours;
  };
  std::vector<Array> arrays(count);
  std::mt19937 random(4);
  for (int turn = 0; turn < 5; ++turn) {
    for (Array& made : arrays) made = x + 1;
    EXPECT_GT(in_order(arrays), count * 9 / 10);
    std::shuffle(arrays.begin(), arrays.end(), random);
    for (Array& made : arrays) made = Array();
  }
}

TEST(Context, AMillionHeldLossesStayBelowSixHundredBytesEach) {
  if (!counts_memory) GTEST_SKIP() << "sanitizers and emulators have memory of their own";
  const Array x = full({16}, 0.5);
  eval(x);
  const int64_t before = resident_bytes();
  std::vector<Array> losses;
  losses.reserve(1000000);
  for (int i = 0; i < 1000000; ++i) {
    losses.push_back(sum(x * i));
    if (i % 1000 == 999) eval();
  }
  eval();
  EXPECT_LE(resident_bytes() - before, int64_t{600} * 1000000);
  EXPECT_EQ(losses[123456].item(), 8.0 * 123456);
  EXPECT_EQ(losses.back().item(), 8.0 * 999999);
}

TEST(Context, ThreadsRecordAndEvaluateOnTheirOwn) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([t, &wrong] {
      Array x = full({50, 3}, t);
      for (int i = 0; i < 200; ++i) {
        x = x + 1;
        if (i % 20 == 0 && sum(x).item() != 150.0 * (t + i + 1)) wrong.fetch_add(1);
      }
      if (x.item(49, 2) != t + 200) wrong.fetch_add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// Hands arrays from one thread to another.
class Mailbox {
 public:
  void put(Array x) {
    std::lock_guard lock(lock_);
    arrays_.push_back(std::move(x));
  }
  Array take() {
    for (;;) {
      {
        std::lock_guard lock(lock_);
        if (!arrays_.empty()) {
          Array x = std::move(arrays_.front());
          arrays_.pop_front();
          return x;
        }
      }
      std::this_thread::yield();
    }
  }
  size_t size() {
    std::lock_guard lock(lock_);
    return arrays_.size();
  }

 private:
  std::mutex lock_;
  std::deque<Array> arrays_;
};

TEST(Context, ANodeIsEvaluatedHereWhileItsThreadRecordsOn) {
  Mailbox box;
  constexpr int rounds = 3000;
  std::thread recorder([&box] {
    Array x = full({8}, 1);
    for (int i = 0; i < rounds; ++i) {
      x = x + 1;  // the next one depends on this one, which the other thread may evaluate at any time
      box.put(x * 2);
      if (i % 100 == 0) eval();
      while (box.size() > 50) std::this_thread::yield();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    const Array x = box.take();
    ASSERT_EQ(x.item(3), 2.0 * (i + 2));
    const Array y = x + 1;
    if (i % 7 == 0) {
      ASSERT_EQ(y.item(0), 2.0 * (i + 2) + 1);
    }
  }
  recorder.join();
}

TEST(Context, ANodeIsDroppedHereWhileItsThreadEvaluates) {
  Mailbox box;
  constexpr int rounds = 20000;
  std::thread recorder([&box] {
    const Array x = full({4}, 3);
    for (int i = 0; i < rounds; ++i) {
      box.put(x + i);
      if (i % 3 == 0) eval();
      while (box.size() > 20) std::this_thread::yield();
    }
    eval();
    EXPECT_EQ(sum(x).item(), 12);
  });
  for (int i = 0; i < rounds; ++i) {
    const Array x = box.take();
    if (i % 50 == 0) {
      ASSERT_EQ(x.item(1), 3.0 + i);
    }
  }
  recorder.join();
}

/// Whatever the thread has left whose place it takes.
TEST(Context, AThreadThatOnlyRecordsGetsBackWhatOthersDrop) {
  std::thread([] {
    std::vector<Array> held;
    for (int i = 0; i < 3000; ++i) held.push_back(full({1}, i) * 2);
  }).join();
  Mailbox box;
  const int64_t before = stats().live_bytes;
  std::atomic<int64_t> most{0};
  std::thread recorder([&] {
    for (int i = 0; i < 3000; ++i) {
      box.put(full({25000}, i) * 2);
      while (box.size() > 4) std::this_thread::yield();
    }
    std::this_thread::yield();
  });
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(box.take().item(24999), 2.0 * i);
    most = std::max(most.load(), stats().live_bytes);
  }
  recorder.join();
  EXPECT_LT(most - before, int64_t{200} << 17);  // a slab of nodes holds 63 results of 100 KB
}

TEST(Context, AThreadThatOnlyRecordsKeepsLittleOfWhatOthersHaveEvaluated) {
  constexpr int64_t count = 1000;
  // It looks when its free nodes, up to 64 slabs, are used up, and again after each slab more while others evaluate.
  constexpr int rounds = 30000, most_kept = 12000;
  const int64_t before = stats().live_bytes;
  Mailbox box;
  std::thread recorder([&box] {
    Array x = ones({count});
    for (int i = 0; i < rounds; ++i) {
      x = x + 1;
      box.put(x);
      while (box.size() > 20) std::this_thread::yield();
    }
  });
  int64_t most = 0;
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    wrong += box.take().item(0) != i + 2;
    most = std::max(most, stats().live_bytes - before);
  }
  recorder.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(most, most_kept * count * 4);
}

TEST(Context, ThreadsThatTakeOverKeepNothingThatOthersHaveEvaluated) {
  constexpr int64_t count = 100000;
  Array x = ones({count});
  eval(x);
  const int64_t before = stats().live_bytes;
  for (int i = 0; i < 100; ++i) {
    std::thread([&x] { x = x + 1; }).join();
    EXPECT_EQ(x.item(0), i + 2);
  }
  EXPECT_LT(stats().live_bytes - before, 8 * count * 4);
}

TEST(Context, AValueThatAnotherThreadStillNeedsIsNotOverwritten) {
  Array w({1.0f, 2.0f, 3.0f, 4.0f}, {4});
  Array doubled = w * 2;
  w = Array();
  const Array p = doubled + 1, q = doubled + 3;
  doubled = Array();
  std::thread([&p] { EXPECT_EQ(p.to_vector(), (std::vector<float>{3, 5, 7, 9})); }).join();
  EXPECT_EQ(q.to_vector(), (std::vector<float>{5, 7, 9, 11}));
}

TEST(Context, APendingNodeThatAnotherThreadReadsIsNotLostWithItsLeaf) {
  Array w({1.0f, 2.0f, 3.0f, 4.0f}, {4});
  Array doubled = w * 2;
  w = Array();
  Array there;
  std::thread other;
  std::latch recorded(1), evaluated(1);
  other = std::thread([&] {
    there = doubled + 10;  // a pending node of this thread that reads one of the main thread
    recorded.count_down();
    evaluated.wait();
    EXPECT_EQ(there.to_vector(), (std::vector<float>{12, 14, 16, 18}));
  });
  recorded.wait();
  Array here = doubled + 1;
  doubled = Array();
  eval(here);  // must not take over the memory of w
  evaluated.count_down();
  other.join();
  EXPECT_EQ(here.to_vector(), (std::vector<float>{3, 5, 7, 9}));
}

TEST(Context, TwoThreadsMayEvaluateTheSameNode) {
  for (int round = 0; round < 300; ++round) {
    const Array x = full({64}, round);
    const Array y = x * 2 + 1;
    std::atomic<int> wrong{0};
    std::latch start(3);
    const auto read = [&] {
      start.arrive_and_wait();
      if (y.item(63) != 2.0 * round + 1) wrong.fetch_add(1);
    };
    std::thread a(read), b(read);
    read();
    a.join();
    b.join();
    ASSERT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace rosin
