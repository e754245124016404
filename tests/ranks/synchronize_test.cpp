// What synchronize makes the root's: models, states whose steps parted, trees of tuples and structs, numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rosin/rosin.hpp>

#include "../error_testing.hpp"
#include "ranks.hpp"

namespace rosin::distributed {
namespace {

struct Net {
  Dense hidden{3, 8, tanh};
  Dense out{8, 2};
};

/// The same on every rank, but for what is added to each element.
Net fresh_net(double more = 0) {
  Rng rng(7);
  const auto drawn = [&](const Array& x) { return randn(rng, x.shape(), Float64) + more; };
  return fmap(drawn, Net{});
}

TEST_F(Ranks, ModelsBecomeTheRoots) {
  for (int root = 0; root < n; ++root) {
    const Net same = synchronize(b, FluxDistributedModel(fresh_net(rank)), {.root = root});
    expect_near(same, fresh_net(root), 0);
    check_synchronized(b, same);
  }
}

/// Some steps of this rule with gradients of ones.
template <class R> State state_after(const R& rule, int steps) {
  Net net = fresh_net();
  State state = setup(rule, net);
  const Net ones = fmap([](const Array& x) { return full(x.shape(), 1, Float64); }, net);
  for (int step = 0; step < steps; ++step) update(state, net, ones);
  return state;
}

/// Each rank made another number of steps, so that what counts them differs too.
template <class R> void expect_the_roots_state(const Backend& b, const R& rule) {
  const int rank = local_rank(b), n = total_workers(b);
  for (int root = 0; root < n; root += std::max(1, n - 1)) {
    const State shared = synchronize(b, state_after(rule, rank + 1), {.root = root}),
                wanted = state_after(rule, root + 1);
    check_synchronized(b, shared);
    EXPECT_EQ(to_string(shared), to_string(wanted));
    const std::vector<Array> got = fleaves(shared), other = fleaves(wanted);
    ASSERT_EQ(got.size(), other.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(values(got[i]), values(other[i])) << i;
    Net net = fresh_net(), plain = fresh_net();
    State next = shared, next_wanted = wanted;
    update(next, net, fresh_net());
    update(next_wanted, plain, fresh_net());
    expect_near(net, plain, 0);
  }
}

TEST_F(Ranks, StatesBecomeTheRootsWhateverStepsWereMade) {
  expect_the_roots_state(b, Adam{});
  expect_the_roots_state(b, Momentum{});
  expect_the_roots_state(b, RAdam{});
  expect_the_roots_state(b, OptimiserChain(AccumGrad{3}, ClipNorm{0.1}, NAdam{}));
  expect_the_roots_state(b, Descent{});  // which has none
}

struct Pair {
  Array first, second;
};

struct Tree {
  std::tuple<Array, std::tuple<Pair, Array>> inside;
  std::vector<Pair> list;
  Array nothing;
  std::string name;
};

Tree tree_of(int rank) {
  const Pair pair{full({3}, rank, Float32), full({2, 2}, 10 + rank, Float64)};
  return {{full({2}, 20 + rank, Int32), {pair, full({1}, 30 + rank, Float16)}},
          {pair, {full({4}, 40 + rank, UInt8), Array(int64_t{rank})}},
          {},
          "of rank " + std::to_string(rank)};
}

TEST_F(Ranks, NestedTuplesAndStructsBecomeTheRoots) {
  for (int root = 0; root < n; ++root) {
    const Tree got = synchronize(b, tree_of(rank), {.root = root}), wanted = tree_of(root);
    const std::vector<Array> arrays = fleaves(got), others = fleaves(wanted);
    ASSERT_EQ(arrays.size(), others.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(arrays[i].is_nothing(), others[i].is_nothing()) << i;
      if (arrays[i].is_nothing()) continue;
      EXPECT_EQ(arrays[i].dtype(), others[i].dtype()) << i;
      EXPECT_EQ(values(arrays[i]), values(others[i])) << i;
    }
    EXPECT_TRUE(got.nothing.is_nothing());
    EXPECT_EQ(got.name, tree_of(rank).name);  // text is each rank's own
    check_synchronized(b, got);
    const auto [one, other] =
        synchronize(b, std::tuple{full({3}, rank, Float32), std::tuple{full({2}, rank, Int32)}}, {.root = root});
    EXPECT_EQ(values(one), std::vector<double>(3, root));
    EXPECT_EQ(values(std::get<0>(other)), std::vector<double>(2, root));
  }
}

TEST_F(Ranks, NumbersBecomeTheRoots) {
  EXPECT_EQ(synchronize(b, rank + 5), 5);
  EXPECT_EQ(synchronize(b, rank + 0.5, {.root = n - 1}), n - 0.5);
  EXPECT_EQ(synchronize(b, rank == 0), true);
}

struct Schedule {
  double rate = 0;
  int64_t step = 0;
  bool warm = false;
  std::vector<float> scales;
  std::array<int, 2> window{};
  std::optional<int> patience;
  std::map<std::string, double> best;
  const int fixed = 5;
  LayerMode mode = LayerMode::automatic;
};

struct Trained {
  Dense layer{3, 2};
  Dropout drop{0.5};
  std::tuple<Array, Schedule> more;
};

Schedule schedule_of(int rank) {
  return {.rate = 0.5 + rank,
          .step = 10 + rank,
          .warm = rank % 2 == 1,
          .scales = {static_cast<float>(rank), static_cast<float>(2 * rank)},
          .window = {rank, rank + 1},
          .patience = rank + 3,
          .best = {{"loss", 0.25 * rank}},
          .mode = rank == 0 ? LayerMode::automatic : LayerMode::test};
}

TEST_F(Ranks, NumbersOfModelsBecomeTheRoots) {
  for (int root = 0; root < n; ++root) {
    const Trained own{.drop = Dropout(0.1 + 0.1 * rank), .more = {full({2}, rank, Float32), schedule_of(rank)}};
    const Trained same = synchronize(b, FluxDistributedModel(own), {.root = root});
    const Schedule got = std::get<1>(same.more), wanted = schedule_of(root);
    EXPECT_EQ(same.drop.p, 0.1 + 0.1 * root);
    EXPECT_EQ(values(std::get<0>(same.more)), std::vector<double>(2, root));
    EXPECT_EQ(got.rate, wanted.rate);
    EXPECT_EQ(got.step, wanted.step);
    EXPECT_EQ(got.warm, wanted.warm);
    EXPECT_EQ(got.scales, wanted.scales);
    EXPECT_EQ(got.window, wanted.window);
    EXPECT_EQ(got.patience, wanted.patience);
    EXPECT_EQ(got.best, wanted.best);
    EXPECT_EQ(got.mode, schedule_of(rank).mode);                    // enums are each rank's own
    EXPECT_EQ(std::get<1>(own.more).rate, schedule_of(rank).rate);  // what was given stays
  }
  const auto [number, pair] = synchronize(b, std::tuple{rank + 7, std::pair{full({1}, rank, Float32), rank + 0.5}});
  EXPECT_EQ(number, 7);
  EXPECT_EQ(pair.second, 0.5);
}

TEST_F(Ranks, OtherNumbersAreNamed) {
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  const auto longer = [&](int extra) {
    return std::tuple{full({1}, 1, Float32), std::vector<double>(static_cast<size_t>(2 + extra))};
  };
  const std::string text = error_of([&] { synchronize(b, longer(rank == 1 ? 1 : 0)); }, ErrorKind::distributed);
  EXPECT_EQ(
      text,
      "synchronize: every rank must have the same arrays and numbers; at position 1 rank 0 has \"[1]\" vector of 16 "
      "bytes, rank 1 has \"[1]\" vector of 24 bytes; make the model in the same way on every rank");
}

TEST_F(Ranks, OtherModelsAreNamed) {
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  EXPECT_EQ(error_of([&] { synchronize(b, Dense(3, rank == 1 ? 5 : 4)); }, ErrorKind::distributed),
            "synchronize: every rank must have the same arrays and numbers; at position 0 rank 0 has \"weight\" (4, 3) "
            "Float32, rank 1 "
            "has \"weight\" (5, 3) Float32; make the model in the same way on every rank");
}

TEST_F(Ranks, WhatIsOutOfStepIsNamed) {
  Net net = fresh_net();
  check_synchronized(b, net);
  check_synchronized(b, setup(Adam{}, net));
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  if (rank == 1) net.out.bias = net.out.bias + 1e-12;
  const std::string text = error_of([&] { check_synchronized(b, net); }, ErrorKind::distributed);
  EXPECT_TRUE(
      text.starts_with("check_synchronized: every rank must have the same arrays; at position 3 rank 0 has "
                       "\"out.bias\" (2) Float64 with elements of hash "))
      << text;
  EXPECT_NE(text.find(", rank 1 has \"out.bias\" (2) Float64 with"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("; synchronize them, and let every rank make the same steps")) << text;
  check_synchronized(b, synchronize(b, net));
}

}  // namespace
}  // namespace rosin::distributed
