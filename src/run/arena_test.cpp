// Tests of arenas: what runs borrow and give back, whichever plan they run, from whichever thread, and whether or not
// they fail.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "run/buffer_pool.hpp"
#include "run/cpu_stream.hpp"
#include "run/idle_arenas.hpp"
#include "run/plan_cache.hpp"

namespace rosin {
namespace {

constexpr int64_t mebibyte = int64_t{1} << 20;

struct Block {
  size_t bytes = 0;
  Block* next = nullptr;
};

TEST(IdleArenas, ARunTakesTheSmallestThatIsLargeEnough) {
  IdleArenas<Block> arenas;
  Block blocks[] = {{100}, {400}, {300}, {200}};
  for (Block& block : blocks) arenas.put(&block);
  EXPECT_EQ(arenas.bytes(), 1000);
  EXPECT_EQ(arenas.take(250, 1000), &blocks[2]);
  EXPECT_EQ(arenas.take(250, 399), nullptr);  // the next one is too large
  EXPECT_EQ(arenas.take(250, arenas.any), &blocks[1]);
  EXPECT_EQ(arenas.take(201, arenas.any), nullptr);
  EXPECT_EQ(arenas.take(1, arenas.any), &blocks[0]);
  EXPECT_EQ(arenas.bytes(), 200);
  EXPECT_EQ(arenas.take_all(), &blocks[3]);
  EXPECT_EQ(arenas.bytes(), 0);
}

TEST(IdleArenas, BeyondTheBudgetThoseUsedLongestAgoGoAndTwoStay) {
  IdleArenas<Block> arenas;
  Block blocks[] = {{100}, {400}, {300}, {200}};
  for (Block& block : blocks) arenas.put(&block);
  arenas.set_limit(1000);
  EXPECT_EQ(arenas.take_surplus(), nullptr);
  arenas.set_limit(900);
  EXPECT_EQ(arenas.take_surplus(), &blocks[0]);
  EXPECT_EQ(arenas.bytes(), 900);
  arenas.set_limit(0);
  EXPECT_EQ(arenas.take_surplus(), &blocks[1]);
  EXPECT_EQ(arenas.take_surplus(), nullptr);
  EXPECT_EQ(arenas.bytes(), 500);
}

class ArenaTest : public testing::Test {
 protected:
  void SetUp() override {
    eval();
    trim();
  }
  void TearDown() override {
    set_memory_limit(Device(), 0);
    set_arena_limit(Device(), usual_arena_limit);
    set_plan_cache_limit(PlanCache::usual_limit);
    trim();
  }
};

/// A chain whose middle stands in an arena of some 512 bytes for each column of x.
double run(const Array& w, const Array& x) {
  const auto chain = [&] {
    Array h = x;
    for (int i = 0; i < 3; ++i) h = tanh(matmul(w, h));
    return sum(h);
  };
  return chain().item();
}

Array some_weights() {
  const Array w = full({64, 64}, 0.01f) * 1;
  eval(w);
  return w;
}
Array some_input(int64_t columns) {
  const Array x = full({64, columns}, 0.5f) * 1;
  eval(x);
  return x;
}

/// Bytes of the arena that a run on x takes.
int64_t arena_of(const Array& w, const Array& x) {
  trim();
  run(w, x);
  return buffer_usage().arenas;
}

/// Alternates; the counters of all rounds but the first.
struct Changes {
  int64_t planned, evicted, allocated, memory;
};
Changes alternate(const Array& w, const Array& a, const Array& b) {
  const double first = run(w, a), second = run(w, b);
  const Stats before = stats();
  const auto memory = [] { return memory_stats(Device()).live + memory_stats(Device()).cached; };
  const int64_t bytes = memory();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(run(w, a), first);
    EXPECT_EQ(run(w, b), second);
  }
  const Stats after = stats();
  return {after.layouts + after.structures - before.layouts - before.structures, after.evicted - before.evicted,
          after.allocations - before.allocations, memory() - bytes};
}

void expect_none(const Changes& changes) {
  EXPECT_EQ(changes.planned, 0);
  EXPECT_EQ(changes.evicted, 0);
  EXPECT_EQ(changes.allocated, 0);
  EXPECT_EQ(changes.memory, 0);
}

TEST_F(ArenaTest, TwoPlansOfSixtyPercentOfTheBudgetShareOne) {
  const Array w = some_weights(), a = some_input(10000), b = some_input(9000);
  const int64_t arena = arena_of(w, a);
  EXPECT_GT(arena, 4 * mebibyte);
  trim();
  set_arena_limit(Device(), arena * 10 / 6);
  expect_none(alternate(w, a, b));
  EXPECT_EQ(buffer_usage().arenas, arena);
}

TEST_F(ArenaTest, TwoPlansThatCannotShareAreKeptBeyondTheBudget) {
  const Array w = some_weights(), a = some_input(20000), b = some_input(2000);
  const int64_t large = arena_of(w, a), small = arena_of(w, b);
  EXPECT_GT(large, 4 * small);
  trim();
  set_arena_limit(Device(), small / 2);
  set_plan_cache_limit(0);
  expect_none(alternate(w, a, b));
  EXPECT_EQ(buffer_usage().arenas, large + small);
}

TEST_F(ArenaTest, PlansShareAnyArenaWhereMemoryHasNoRoomForTwo) {
  const Array w = some_weights(), a = some_input(20000), b = some_input(4000);
  const int64_t large = arena_of(w, a), small = arena_of(w, b);
  EXPECT_GT(large, 4 * small);
  trim();
  set_memory_limit(Device(), memory_stats(Device()).live + large + small / 2);
  expect_none(alternate(w, a, b));
  EXPECT_EQ(buffer_usage().arenas, large);
}

TEST_F(ArenaTest, ThreeLargePlansPlanNothingAnew) {
  const Array w = some_weights();
  const Array inputs[] = {some_input(9000), some_input(9500), some_input(10000)};
  set_arena_limit(Device(), arena_of(w, inputs[2]) * 10 / 6);
  for (const Array& x : inputs) run(w, x);
  const Stats before = stats();
  for (int i = 0; i < 12; ++i) run(w, inputs[i % 3]);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(stats().allocations, before.allocations);
}

TEST_F(ArenaTest, ThreadsThatRunOnePlanAtOnceHaveOneEach) {
  constexpr size_t threads = 4;
  const Array w = some_weights(), x = some_input(3000);
  const double expected = run(w, x);
  const int64_t arena = buffer_usage().arenas;
  const Stats before = stats();
  std::atomic<int> wrong{0};
  std::barrier start(threads);
  std::vector<std::thread> all;
  for (size_t t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      start.arrive_and_wait();
      for (int i = 0; i < 25; ++i) wrong += run(w, x) != expected;
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(buffer_usage().borrowed, 0);
  EXPECT_LE(buffer_usage().arenas, static_cast<int64_t>(threads) * arena);
}

TEST_F(ArenaTest, ARunThatFailsGivesItsArenaBack) {
  const Array w = some_weights(), x = some_input(500);
  const auto pick = [&](int column) {
    const auto picked = [&] { return gather(tanh(matmul(w, x)), Array({column}, {1}), 1); };
    return sum(picked()).item();
  };
  const double good = pick(3);
  const Stats before = stats();
  const int64_t arenas = buffer_usage().arenas;
  EXPECT_GT(arenas, 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THROW(pick(500), Error);
    EXPECT_EQ(buffer_usage().borrowed, 0);
  }
  EXPECT_EQ(pick(3), good);
  EXPECT_EQ(buffer_usage().borrowed, 0);
  EXPECT_EQ(stats().allocations, before.allocations);
}

TEST_F(ArenaTest, ARunBehindItsThreadGivesItsArenaBackWhenItIsOver) {
  set_num_threads(2);
  CpuStream::instance().set_patience(1 << 30);
  {
    Dense net(full({4, 6}, 0.1f) * 1, zeros({4}) + 0, tanh);
    State state = setup(Adam{}, net);
    const Array x = full({6, 8}, 0.5f) * 1;
    const auto step = [&] { update(state, net, gradient([&](const Dense& m) { return sum(square(m(x))); }, net)); };
    const uint64_t runs = CpuStream::instance().finished();
    for (int i = 0; i < 20000 && CpuStream::instance().finished() < runs + 10; ++i) step();
    EXPECT_GE(CpuStream::instance().finished(), runs + 10) << "no run went behind";
    const Stats before = stats();
    for (int i = 0; i < 500; ++i) step();
    eval();
    EXPECT_EQ(stats().allocations, before.allocations);
    EXPECT_EQ(buffer_usage().borrowed, 0);
  }
  CpuStream::instance().set_patience(4000);
  set_num_threads(0);
}

TEST_F(ArenaTest, TrimGivesIdleArenasBackAndPlansStay) {
  const Array w = some_weights(), x = some_input(3000);
  const double expected = run(w, x);
  EXPECT_GT(memory_stats(Device()).cached, mebibyte);
  const Stats before = stats();
  trim(Device());
  EXPECT_EQ(memory_stats(Device()).cached, 0);
  EXPECT_EQ(run(w, x), expected);
  EXPECT_EQ(stats().layouts, before.layouts);
}

TEST_F(ArenaTest, AnArenaBeyondTheBudgetIsMemoryForArrays) {
  const Array w = some_weights();
  const Array inputs[] = {some_input(3000), some_input(15000), some_input(60000)};
  for (const Array& x : inputs) run(w, x);
  const int64_t arenas = buffer_usage().arenas, cached = memory_stats(Device()).cached;
  set_arena_limit(Device(), 0);
  EXPECT_LT(buffer_usage().arenas, arenas);
  EXPECT_EQ(memory_stats(Device()).cached, cached);
}

}  // namespace
}  // namespace rosin
