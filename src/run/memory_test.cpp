// Tests of the CPU's memory: figures, limits, what is kept for later and for how long, and running out.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/sanitizer_testing.hpp"
#include "run/buffer_pool.hpp"
#include "run/idle_arenas.hpp"
#include "run/plan_cache.hpp"

namespace rosin {
namespace {

constexpr int64_t MiB = int64_t{1} << 20;

class CpuMemory : public testing::Test {
 protected:
  void SetUp() override { trim(); }
  void TearDown() override {
    set_memory_limit(Device(), 0);
    set_plan_cache_limit(PlanCache::usual_limit);
    set_arena_limit(Device(), usual_arena_limit);
    trim();
  }
};

MemoryStats memory() { return memory_stats(Device()); }

/// The text of the memory error that it throws.
template <class Take> std::string refusal(Take take) {
  try {
    take();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "there was memory";
  return {};
}

TEST_F(CpuMemory, IsCountedForArraysAndForPlans) {
  const Array w = full({1024, 1024}, 0.5f) * 1;
  eval(w);
  trim();
  const MemoryStats before = memory();
  const int64_t arrays = stats().live_bytes;
  Array x = fresh_leaf(Float32, {MiB});
  EXPECT_EQ(memory().live - before.live, 4 * MiB);
  // (Inside a function: what an expression makes on the way is held until its end, and comes out as arrays.)
  const auto work = [&] { return sum(exp(matmul(matmul(w, w), w))); };
  eval(work());  // both products stand in the arena of the run
  EXPECT_LT(memory().live - before.live, 5 * MiB);
  EXPECT_GE(buffer_usage().arenas, 8 * MiB);
  EXPECT_GE(memory().cached, buffer_usage().arenas);
  EXPECT_EQ(stats().pooled_bytes, memory().cached);
  EXPECT_EQ(stats().live_bytes - arrays, memory().live - before.live);
  EXPECT_GT(stats().cache_bytes, 0);
  EXPECT_LT(stats().cache_bytes, MiB);
  EXPECT_GE(memory().peak, memory().live + 8 * MiB);
  x = Array();
  trim();
  EXPECT_EQ(memory().live, before.live);
  EXPECT_EQ(memory().cached, 0);
}

TEST_F(CpuMemory, BeyondItsLimitIsAnErrorWithFiguresAndTheRestWorksOn) {
  const Array kept = full({1000}, 2.0f) + 1;
  eval(kept);
  set_memory_limit(Device(), memory().live + 8 * MiB);
  EXPECT_EQ(memory().limit, memory().live + 8 * MiB);
  const std::string text = refusal([] { eval(full({8 * MiB}, 1.0f) + 1); });
  for (const char* part : {"allocate: out of memory on CPU; requested 32.0 MiB, live ", ", cached ", ", limit "})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(sum(kept + full({MiB / 4}, 1.0f).item(0)).item(), 4000);
}

TEST_F(CpuMemory, UnusedBuffersAreGivenBackBeforeItRunsOut) {
  set_memory_limit(Device(), memory().live + 48 * MiB);
  for (int64_t i = 1; i <= 20; ++i) {  // of ever other sizes: arrays, and arenas of plans
    const Array x = full({i * 12000, 8}, 1.0f);
    EXPECT_EQ(sum(matmul(x + 1, full({8, 8}, 1.0f))).item(), static_cast<double>(i * 12000 * 8 * 16));
  }
  EXPECT_LE(memory().live + memory().cached, memory().limit);
}

TEST_F(CpuMemory, NegativeLimitsAreRefused) {
  EXPECT_THROW(set_memory_limit(Device(), -1), Error);
  EXPECT_THROW(set_memory_limit(Device(), std::numeric_limits<int64_t>::min()), Error);
  EXPECT_THROW(set_arena_limit(Device(), -1), Error);
}

TEST_F(CpuMemory, RunningOutIsOneKindOfErrorEverywhere) {
  if (!memory_may_run_out) GTEST_SKIP() << "sanitizers end the process where memory runs out";
  constexpr int64_t one = 1;
  const Array image = expand(full({1, 1, 1, 1}, 1.0f), {64, 64, 64, one << 20});
  refusal([] { eval(zeros({one << 44})); });
  refusal([] { eval(randn({one << 44})); });
  refusal([] { eval(uniform({one << 44})); });
  refusal([] { randint(0, 9, {one << 44}).item(0); });
  refusal([&] { eval(conv(image, full({3, 3, 64, 64}, 1.0f))); });
  refusal([] { arange(one << 44); });
  refusal([] { arange(0.0, 1e14, 1.0); });
  refusal([] { linspace(0, 1, one << 56); });
  refusal([] { eval(tile(full({4}, 1.0f), one << 44, 0)); });
  refusal([] { eval(repeat(full({4}, 1.0f), one << 44, 0)); });
  refusal([] { eval(pad(full({4}, 1.0f), 0, one << 44, 0)); });
  refusal([] { eval(cumsum(expand(full({1}, 1.0f), {one << 44}), 0)); });
  refusal([] { eval(matmul(expand(full({1, 1}, 1.0f), {one << 22, 2}), expand(full({1, 1}, 1.0f), {2, one << 22}))); });
  refusal([] { to_string(expand(full({1}, 1.0f), {one << 44})); });
  refusal([] { detail::host_vector<double>("read", one << 61); });
  EXPECT_EQ((full({2}, 1.0f) + 1).item(0), 2);
}

/// One step over a chain of so many products: the longer, the more there is to plan.
double step(const Array& w, const Array& x, int length) {
  const auto loss = [&](const Array& v) {
    Array h = x;
    for (int i = 0; i < length; ++i) h = tanh(matmul(v, h) + 0.1);
    return mean(h * h);
  };
  return sum(gradient(loss, w)).item();
}

TEST_F(CpuMemory, ShapesThatGrowStayInsideTheBudgetOfPlans) {
  constexpr int64_t budget = 4 * MiB;
  set_plan_cache_limit(budget);
  const Array w = full({8, 8}, 0.1f), x = full({8, 4}, 0.5f);
  eval();
  for (int length = 1; length <= 40; ++length) {
    step(w, x, length);
    ASSERT_LE(stats().cache_bytes, budget) << length;
  }
  const Stats before = stats();
  step(w, x, 40);
  EXPECT_EQ(stats().structures, before.structures);
}

TEST_F(CpuMemory, TheUsualBudgetOfIdleArenasIs256MiB) {
  const Array w = full({64, 64}, 0.01f);
  for (int64_t batch = 4000; batch < 20000; batch += 1000) {
    step(w, full({64, batch}, 0.5f), 4);
    ASSERT_LE(buffer_usage().arenas, 256 * MiB) << batch;
    ASSERT_LE(memory().live + memory().cached, 700 * MiB) << batch;
  }
  EXPECT_LT(stats().cache_bytes, 16 * MiB);  // plans themselves are small
}

TEST_F(CpuMemory, BuffersThatNoStepUsesForAWhileGoBack) {
  constexpr int64_t large = 100 * MiB;
  {
    std::vector<Array> once;
    for (int i = 0; i < 5; ++i) once.push_back(fresh_leaf(UInt8, {large + i * large / 4}));
  }
  EXPECT_GE(memory().cached, 5 * large);
  for (int i = 0; i < 40; ++i) {
    const Array used = fresh_leaf(UInt8, {large});
    eval(full({4}, 1.0f) + i);
  }
  EXPECT_LE(memory().cached, 256 * MiB);
  const int64_t before = memory().live + memory().cached;
  const Array used = fresh_leaf(UInt8, {large});  // what is used is kept
  EXPECT_EQ(memory().live + memory().cached, before);
}

}  // namespace
}  // namespace rosin
