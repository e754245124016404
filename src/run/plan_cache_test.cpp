// Tests of the plan cache: what finds a plan again, what makes a new one, and how much it keeps.
#include "run/plan_cache.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

struct TwoLayers {
  Array w, b, v;
};

TwoLayers two_layers(int64_t features) {
  const auto ramp = [](int64_t rows, int64_t columns) {
    return reshape(cast(arange(rows * columns), Float32) / static_cast<double>(rows * columns) - 0.5, {rows, columns});
  };
  return {ramp(12, features), zeros({12}), ramp(4, 12)};
}

/// One step of descent on x (features, batch): what a training step is made of.
void step(TwoLayers& model, int64_t features, int64_t batch, double rate) {
  const Array x = reshape(sin(cast(arange(features * batch), Float32)), {features, batch});
  const auto loss = [&](const TwoLayers& m) {
    const Array hidden = relu(matmul(m.w, x) + m.b);
    return -mean(sum(logsoftmax(matmul(m.v, hidden)), 0));
  };
  const auto [value, g] = withgradient(loss, model);
  model = {model.w - rate * g.w, model.b - rate * g.b, model.v - rate * g.v};
  eval();
}

class PlanCacheTest : public testing::Test {
 protected:
  void SetUp() override { trim(); }
  void TearDown() override {
    set_plan_cache(true);
    set_plan_cache_limit(PlanCache::usual_limit);
  }
};

TEST_F(PlanCacheTest, ANewBatchSizeCompilesNothing) {
  TwoLayers model = two_layers(9);
  step(model, 9, 32, 0.1);
  step(model, 9, 32, 0.1);
  // also sizes that equal a number of features
  for (int64_t batch : {33, 2, 3, 4, 9, 12, 13, 64, 200, 1000}) {
    const Stats before = stats();
    step(model, 9, batch, 0.1);
    EXPECT_EQ(stats().structures, before.structures) << batch;
    EXPECT_EQ(stats().layouts, before.layouts + 1) << batch;
    const Stats first = stats();
    step(model, 9, batch, 0.1);
    EXPECT_EQ(stats().layouts, first.layouts) << batch;
    EXPECT_EQ(stats().plan_hits, first.plan_hits + 1) << batch;
  }
}

TEST_F(PlanCacheTest, TheTimeOfPlanningIsCounted) {
  TwoLayers model = two_layers(10);
  reset_stats();
  step(model, 10, 24, 0.1);
  step(model, 10, 24, 0.1);
  const int64_t first = stats().planning_ns;
  EXPECT_GT(first, 0);
  step(model, 10, 24, 0.1);
  EXPECT_EQ(stats().planning_ns, first);
  step(model, 10, 25, 0.1);
  EXPECT_GT(stats().planning_ns, first);
  reset_stats();
  EXPECT_EQ(stats().planning_ns, 0);
}

TEST_F(PlanCacheTest, ABatchOfOneIsAnotherPatternAndRightToo) {
  TwoLayers model = two_layers(9), same_model = model;
  step(model, 9, 5, 0.1);
  step(model, 9, 1, 0.1);
  step(model, 9, 5, 0.1);
  set_plan_cache(false);
  for (int64_t batch : {5, 1, 5}) step(same_model, 9, batch, 0.1);
  EXPECT_EQ(model.w.to_vector(), same_model.w.to_vector());
}

TEST_F(PlanCacheTest, ANewLearningRateMissesNothing) {
  TwoLayers model = two_layers(9);
  for (int i = 0; i < 2; ++i) step(model, 9, 16, 0.1);
  const Stats before = stats();
  for (double rate : {0.2, 0.0, 1.0, -1.0, 1e-30}) step(model, 9, 16, rate);
  EXPECT_EQ(stats().structures, before.structures);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(stats().plan_hits, before.plan_hits + 5);
}

TEST_F(PlanCacheTest, NumbersOfEveryKindMissNothing) {
  const Array x({1.0f, 2.0f, 3.0f}, {3}), k({1, 2, 3}, {3});
  const auto run = [&](double number, int whole, bool truth) {
    const Array a = x * number + whole, b = k + whole, c = where(x > number, x, Array(number)), d = full({3}, number),
                e = Array(truth) & (x > 0), f = pad(x, 0, 1, 1, number), g = max(x, Array(number)) / whole;
    eval();
    return a.item(0) + b.item(1) + c.item(2) + d.item(0) + e.item(0) + f.item(0) + g.item(0);
  };
  run(0.5, 2, true);
  const Stats before = stats();
  EXPECT_EQ(run(0.25, 3, false), 3.25 + 5 + 3 + 0.25 + 0 + 0.25 + static_cast<float>(1.0 / 3));
  EXPECT_EQ(run(2, 1, true), 3 + 3 + 3 + 2 + 1 + 2 + 2);
  EXPECT_EQ(stats().structures, before.structures);
  EXPECT_EQ(stats().layouts, before.layouts);
}

TEST_F(PlanCacheTest, EqualStepsGiveEqualBitsWithAndWithoutTheCache) {
  std::vector<std::vector<float>> results;
  for (bool on : {true, false, true}) {
    set_plan_cache(on);
    TwoLayers model = two_layers(11);
    for (int64_t i = 0; i < 30; ++i) step(model, 11, 3 + i % 4 * 7, 0.05);
    results.push_back(model.w.to_vector());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_F(PlanCacheTest, WithoutTheCacheNothingIsKept) {
  set_plan_cache(false);
  TwoLayers model = two_layers(9);
  for (int i = 0; i < 5; ++i) step(model, 9, 8, 0.1);
  EXPECT_EQ(stats().cache_bytes, 0);
}

TEST_F(PlanCacheTest, AThousandBatchSizesStayInsideTheBudget) {
  constexpr int64_t budget = 1 << 20;
  TwoLayers model = two_layers(9);
  step(model, 9, 32, 0.1);
  set_plan_cache_limit(budget);
  reset_stats();
  for (int64_t batch = 2; batch < 1002; ++batch) {
    step(model, 9, batch, 0.001);
    ASSERT_LE(stats().cache_bytes, budget) << batch;
  }
  EXPECT_GT(stats().evicted, 100);
  EXPECT_LE(stats().structures, 3);
  const Stats before = stats();
  step(model, 9, 1001, 0.001);
  EXPECT_EQ(stats().plan_hits, before.plan_hits + 1);  // the one used last is still there
  step(model, 9, 2, 0.001);
  EXPECT_EQ(stats().layouts, before.layouts + 1);  // the one used first is not
}

TEST_F(PlanCacheTest, ALimitOfNothingStillComputes) {
  set_plan_cache_limit(0);
  TwoLayers model = two_layers(9);
  for (int64_t batch : {4, 5, 4}) step(model, 9, batch, 0.1);
  EXPECT_TRUE(std::isfinite(model.w.item(0, 0)));
}

std::shared_ptr<Plan> plan_of(uint64_t structure_word, uint64_t sizes_word) {
  auto plan = std::make_shared<Plan>();
  plan->compiled = std::make_shared<plan::Compiled>(std::make_shared<plan::Structure>());
  auto layout = std::make_shared<plan::Layout>();
  layout->structure = plan->compiled->structure;
  plan->layout = layout;
  plan->structure_key = {{structure_word}, 1};  // all keys have the same hash
  plan->sizes_key = {{sizes_word}, 1};
  return plan;
}

TEST_F(PlanCacheTest, KeysOfOneHashAreToldApartByTheirWords) {
  PlanCache cache;
  const auto a = plan_of(10, 1), b = plan_of(11, 1), c = plan_of(10, 2);
  c->compiled = a->compiled;
  for (const auto& plan : {a, b, c}) cache.insert(plan);
  EXPECT_EQ(cache.find(a->structure_key, a->sizes_key), a);
  EXPECT_EQ(cache.find(b->structure_key, b->sizes_key), b);
  EXPECT_EQ(cache.find(c->structure_key, c->sizes_key), c);
  EXPECT_EQ(cache.find(b->structure_key, c->sizes_key), nullptr);
  EXPECT_EQ(cache.find_compiled(b->structure_key), b->compiled);
  EXPECT_EQ(cache.find_compiled({{12}, 1}), nullptr);
  cache.set_limit(0);  // the least recently used go first, the last two stay
  EXPECT_EQ(cache.find(a->structure_key, a->sizes_key), nullptr);
  EXPECT_EQ(cache.find(b->structure_key, b->sizes_key), b);
  EXPECT_EQ(cache.find(c->structure_key, c->sizes_key), c);
  EXPECT_EQ(cache.find_compiled(a->structure_key), a->compiled);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(cache.find_compiled(a->structure_key), nullptr);
}

TEST_F(PlanCacheTest, PlansMayBeDroppedWhileOtherThreadsRunThem) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  const auto run = [&](int64_t batch) {
    while (!stop) {
      const Array x = full({3, batch}, 2);
      if (sum(x * x).item() != static_cast<double>(12 * batch)) wrong.fetch_add(1);
    }
  };
  std::thread a(run, 5), b(run, 6), c(run, 5);
  for (int i = 0; i < 300; ++i) {
    trim();
    set_plan_cache_limit(i % 2 ? 0 : 1 << 20);
    set_plan_cache(i % 3 != 0);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread* thread : {&a, &b, &c}) thread->join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace rosin
