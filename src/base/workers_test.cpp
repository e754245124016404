// Tests of the worker threads: every chunk runs once, whatever else happens.
#include "base/workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../tests/sanitizer_testing.hpp"

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace rosin {
namespace {

class Workers : public testing::Test {
 protected:
  void SetUp() override { set_worker_threads(4); }
  void TearDown() override { set_worker_threads(0); }
};

/// How often each chunk of one call ran.
std::vector<int> runs_of(int64_t chunks) {
  std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
  parallel_for(chunks, [&](int64_t chunk) { runs[static_cast<size_t>(chunk)].fetch_add(1); });
  return {runs.begin(), runs.end()};
}

TEST_F(Workers, EveryChunkRunsOnce) {
  for (int64_t chunks : {0, 1, 2, 3, 4, 5, 64, 1000}) {
    EXPECT_EQ(runs_of(chunks), std::vector<int>(static_cast<size_t>(chunks), 1)) << chunks;
  }
}

TEST_F(Workers, EveryChunkRunsOnceInManyShortCallsOfChangingLength) {
  // A worker that comes late to one call must take no chunk of the next.
  std::vector<std::atomic<int>> runs(64);
  for (int call = 0; call < 30000; ++call) {
    const int64_t chunks = 2 + call * 7 % 60;
    parallel_for(chunks,
                 [&](int64_t chunk) { runs[static_cast<size_t>(chunk)].fetch_add(1, std::memory_order_relaxed); });
    for (int64_t i = 0; i < chunks; ++i) ASSERT_EQ(runs[static_cast<size_t>(i)].exchange(0), 1) << call << " " << i;
  }
}

TEST_F(Workers, EveryChunkRunsOnceWhateverTheNumbers) {
  for (const int threads : {2, 3, 5, 70, 2}) {  // more than there are ranges, too
    set_worker_threads(threads);
    for (int64_t chunks = 2; chunks < 200; chunks += 3) {
      std::vector<std::atomic<int>> ran(static_cast<size_t>(chunks));
      parallel_for(chunks, [&](int64_t chunk) { ++ran[static_cast<size_t>(chunk)]; });
      for (const std::atomic<int>& times : ran) ASSERT_EQ(times.load(), 1) << threads << " threads, " << chunks;
    }
  }
}

TEST_F(Workers, WhoIsDoneTakesTheChunksOfOthers) {
  set_worker_threads(2);
  std::atomic<int> ran = 0;
  // The first chunk lasts until all others are done, of which its own thread would have half.
  parallel_for(16, [&](int64_t chunk) {
    while (chunk == 0 && ran < 15) std::this_thread::yield();
    ++ran;
  });
  EXPECT_EQ(ran, 16);
}

TEST_F(Workers, WhatChunksWroteIsSeenAfterTheCall) {
  std::vector<int> written(500, 0);
  for (int round = 1; round < 200; ++round) {
    parallel_for(500, [&](int64_t chunk) { written[static_cast<size_t>(chunk)] = round; });
    for (int x : written) ASSERT_EQ(x, round);
  }
}

TEST_F(Workers, TheExceptionOfTheLowestChunkIsThrown) {
  for (int threads : {1, 2, 4, 7}) {
    set_worker_threads(threads);
    for (int call = 0; call < 50; ++call) {
      std::string text;
      try {
        parallel_for(40, [](int64_t chunk) {
          if (chunk % 8 == 5) throw std::runtime_error("chunk " + std::to_string(chunk));
        });
      } catch (const std::runtime_error& error) {
        text = error.what();
      }
      ASSERT_EQ(text, "chunk 5") << threads << " threads";
    }
    EXPECT_EQ(runs_of(30), std::vector<int>(30, 1)) << "after an exception";
  }
}

TEST_F(Workers, ACallInsideAChunkRunsThere) {
  std::atomic<int> inner{0};
  std::atomic<int> elsewhere{0};
  parallel_for(20, [&](int64_t) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_for(10, [&](int64_t) {
      inner.fetch_add(1);
      if (std::this_thread::get_id() != here) elsewhere.fetch_add(1);
    });
  });
  EXPECT_EQ(inner, 200);
  EXPECT_EQ(elsewhere, 0);
}

TEST_F(Workers, AnExceptionInsideANestedCallComesOut) {
  EXPECT_THROW(parallel_for(8, [](int64_t) { parallel_for(4, [](int64_t) { throw std::runtime_error("inner"); }); }),
               std::runtime_error);
}

TEST_F(Workers, ManyThreadsMayCallAtOnce) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&wrong] {
      for (int call = 0; call < 300; ++call) {
        if (runs_of(17) != std::vector<int>(17, 1)) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Workers, TheNumberOfThreadsMayChangeBetweenCalls) {
  for (int round = 0; round < 50; ++round) {
    set_worker_threads(1 + round % 5);
    EXPECT_EQ(worker_threads(), 1 + round % 5);
    ASSERT_EQ(runs_of(33), std::vector<int>(33, 1));
  }
  set_worker_threads(0);
  EXPECT_GE(worker_threads(), 1);
}

TEST_F(Workers, TheNumberOfThreadsMayChangeInsideAChunkAndMeanwhile) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 0; !stop; ++n) set_worker_threads(1 + n % 6);
  });
  for (int call = 0; call < 300; ++call) ASSERT_EQ(runs_of(21), std::vector<int>(21, 1));
  stop = true;
  changer.join();
  set_worker_threads(3);
  parallel_for(6, [](int64_t chunk) { set_worker_threads(2 + static_cast<int>(chunk % 2)); });
  EXPECT_EQ(runs_of(9), std::vector<int>(9, 1));
}

#if __has_include(<sys/wait.h>)  // a system that forks
TEST_F(Workers, AForkedChildHasWorkersOfItsOwn) {
  if (!child_may_start_threads) GTEST_SKIP() << "no threads start in a forked child here";
  runs_of(100);  // the parent's workers exist, and do not in the child
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool right = runs_of(200) == std::vector<int>(200, 1) && runs_of(3) == std::vector<int>(3, 1);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(runs_of(100), std::vector<int>(100, 1));
}

TEST_F(Workers, AChildForkedWhileAnotherThreadUsesTheWorkersIsUsable) {
  if (!child_may_start_threads) GTEST_SKIP() << "no threads start in a forked child here";
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) runs_of(50);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(runs_of(40) == std::vector<int>(40, 1) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
}
#endif

}  // namespace
}  // namespace rosin
