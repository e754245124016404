// Data-parallel training as each of several processes sees it: tests/ranks_test.py starts this program as 1, 2 and 4
// ranks. Every test is run by every rank at the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/rosin.hpp>

#include "../error_testing.hpp"
#include "ranks.hpp"

namespace rosin::distributed {
namespace {

struct Net {
  Dense hidden{3, 8, tanh};
  Dense out{8, 2};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

Array loss_of(const Net& m, const Array& x, const Array& y) { return mean(square(m(x) - y)); }

/// The same on every rank and in every run.
Net fresh_net() {
  Rng rng(7);
  Net net;
  for (Array* x : {&net.hidden.weight, &net.out.weight}) *x = randn(rng, x->shape(), Float64);
  for (Array* x : {&net.hidden.bias, &net.out.bias}) *x = zeros(x->shape(), Float64);
  return net;
}

TEST_F(Ranks, KnowTheirNumber) {
  EXPECT_TRUE(takes_nccl() ? initialized<NCCLBackend>() : initialized());
  EXPECT_GE(rank, 0);
  EXPECT_LT(rank, n);
  EXPECT_EQ(to_string(b),
            std::string(b.name()) + " backend: rank " + std::to_string(rank) + " of " + std::to_string(n));
  std::vector<double> expected(static_cast<size_t>(n));
  std::iota(expected.begin(), expected.end(), 0.0);
  EXPECT_EQ(values(allgather(b, Array(rank))), expected);
}

TEST_F(Ranks, ABackendIsInitializedFirst) {
  EXPECT_EQ(
      error_of([] { get_distributed_backend<NCCLBackend>(); }, ErrorKind::distributed),
      "get_distributed_backend: NCCLBackend is not initialized; call distributed::initialize<NCCLBackend>() first");
}

TEST_F(Ranks, BroadcastGivesTheRootsElements) {
  for (int root = 0; root < n; ++root) {
    const Array x = full({512}, rank + 1, Float32);
    EXPECT_EQ(values(bcast(b, x, {.root = root})), std::vector<double>(512, root + 1));
  }
}

TEST_F(Ranks, AllReduceSumsAndAverages) {
  const Array x = full({4, 128}, rank + 1, Float32);
  const double sum = n * (n + 1) / 2.0;
  EXPECT_EQ(values(allreduce(b, x, Reduction::sum)), std::vector<double>(512, sum));
  EXPECT_EQ(values(allreduce(b, x, avg)), std::vector<double>(512, sum / n));
  EXPECT_EQ(values(allreduce(b, x, Reduction::maximum)), std::vector<double>(512, n));
  EXPECT_EQ(values(allreduce(b, x, Reduction::minimum)), std::vector<double>(512, 1));
  EXPECT_EQ(values(allreduce(b, x, Reduction::product)), std::vector<double>(512, std::tgamma(n + 1.0)));
}

TEST_F(Ranks, ReduceGivesTheResultToTheRootAlone) {
  const double sum = n * (n + 1) / 2.0;
  const std::pair<Reduction, double> results[] = {{Reduction::sum, sum},
                                                  {Reduction::product, std::tgamma(n + 1.0)},
                                                  {Reduction::minimum, 1},
                                                  {Reduction::maximum, n},
                                                  {avg, sum / n}};
  for (const auto& [reduction, result] : results) {
    for (int root = 0; root < n; ++root) {
      for (const DType type : {Int64, Float64, Float32}) {
        if (type == Int64 && reduction == avg) continue;
        const Array x = full({512}, rank + 1, type), got = reduce(b, x, reduction, {.root = root});
        EXPECT_EQ(got.dtype(), type);
        EXPECT_EQ(values(got), std::vector<double>(512, rank == root ? result : rank + 1))
            << static_cast<int>(reduction) << " to " << root;
        EXPECT_EQ(values(x), std::vector<double>(512, rank + 1));
      }
    }
  }
}

TEST_F(Ranks, EveryTypeIsReduced) {
  for (const DType type : {UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, BFloat16, Float32,
                           Float64, ComplexF32, ComplexF64}) {
    const Array x = cast(full({7}, rank + 1, Float32), type);
    const Array sum = allreduce(b, x, Reduction::sum);
    EXPECT_EQ(sum.dtype(), type);
    EXPECT_EQ(values(is_complex(type) ? real(sum) : sum), std::vector<double>(7, n * (n + 1) / 2)) << to_string(type);
  }
}

TEST_F(Ranks, GatherAndScatterGoAlongTheLastDim) {
  std::vector<double> expected;
  for (int r = 0; r < n; ++r) expected.insert(expected.end(), 6, r);
  const Array all = allgather(b, full({3, 2}, rank, Float32));
  EXPECT_EQ(all.shape(), (Shape{3, 2 * n}));
  EXPECT_EQ(values(all), expected);
  const Array part = reduce_scatter(b, all, Reduction::sum);
  EXPECT_EQ(part.shape(), (Shape{3, 2}));
  EXPECT_EQ(values(part), std::vector<double>(6, rank * n));
}

TEST_F(Ranks, WrongArgumentsAreRefusedOnEveryRank) {
  EXPECT_EQ(error_of([&] { allreduce(b, full({2}, 1, Int32), avg); }, ErrorKind::dtype),
            "allreduce: an average needs a floating type; x is Int32; reduce the sum, or convert with cast");
  EXPECT_EQ(error_of([&] { bcast(b, zeros({2}), {.root = 99}); }, ErrorKind::argument).substr(0, 38),
            "bcast: the root must be a rank, 0 to " + std::to_string(n - 1));
  EXPECT_EQ(error_of([&] { allreduce(b, Array(), avg); }, ErrorKind::argument),
            "allreduce: x must be an array; got nothing (an empty handle)");
}

TEST_F(Ranks, DataIsSharedOut) {
  const Array x = rand({1, 10}, Float64);
  const Array data = bcast(b, x);
  const DataContainer container(b, data);
  const int64_t share = (10 + n - 1) / n;
  EXPECT_EQ(container.numobs(), std::max<int64_t>(0, std::min<int64_t>(share, 10 - rank * share)));
  const Array own = container.numobs() > 0 ? sum(getobs(container)) : Array(zeros({}, Float64));
  EXPECT_NEAR(allreduce(b, own, Reduction::sum).item(), sum(data).item(), 1e-12);
}

TEST_F(Ranks, FewerObservationsThanFitLeaveTheLastRanksShortOrEmpty) {
  Rng rng(2);
  const Array data = randn(rng, {3, 5}, Float64);
  const DataContainer five(b, data);
  std::vector<int64_t> sizes(static_cast<size_t>(n));
  for (int64_t i = 0, share = (5 + n - 1) / n; i < 5; ++i) ++sizes[static_cast<size_t>(i / share)];
  EXPECT_TRUE(n != 2 || sizes == (std::vector<int64_t>{3, 2}));
  EXPECT_TRUE(n != 4 || sizes == (std::vector<int64_t>{2, 2, 1, 0}));
  EXPECT_EQ(allgather(b, Array(five.numobs())).to_vector<int64_t>(), sizes);
  EXPECT_EQ(five.indices().size(), static_cast<size_t>(five.numobs()));
  const int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + rank, int64_t{0}), end = begin + five.numobs();
  EXPECT_EQ(values(getobs(five)), values(data(slice(), slice(begin, end))));
  EXPECT_EQ(getobs(five).shape(), (Shape{3, five.numobs()}));
}

TEST_F(Ranks, BatchesAreSharedOutInOneOrderForAll) {
  std::vector<double> all_of_one(21), of_ranks;
  std::iota(all_of_one.begin(), all_of_one.end(), 0.0);
  const Array data(std::span<const double>(all_of_one), {1, 21});
  DataLoader whole(data, {.batchsize = 8, .shuffle = true, .rng = Rng{7}});
  DataLoader mine(data, {.batchsize = 8, .shuffle = true, .rng = Rng{7}, .part = batch_part(b)});
  EXPECT_EQ(mine.size(), whole.size());
  auto own = mine.begin();
  for (const Array& batch : whole) {
    const std::vector<double> part = values(*own);
    std::vector<double> found;
    for (int root = 0; root < n; ++root) {
      const Array count = bcast(b, Array(static_cast<int64_t>(part.size())), {.root = root});
      const Array of_root = root == rank ? *own : Array(zeros({1, count.item<int64_t>()}, Float64));
      for (const double value : values(bcast(b, of_root, {.root = root}))) found.push_back(value);
    }
    EXPECT_EQ(found, values(batch));
    of_ranks.insert(of_ranks.end(), found.begin(), found.end());
    ++own;
  }
  std::sort(of_ranks.begin(), of_ranks.end());
  EXPECT_EQ(of_ranks, all_of_one);
}

TEST_F(Ranks, TheStateOfTheRuleIsThatOfTheRuleInside) {
  Net net = fresh_net(), plain = fresh_net();
  State state = setup(Optimizer(b, Adam{1e-3}), net), inside = setup(Adam{1e-3}, plain);
  const std::string head = "Optimizer(" + kind_of(b) + ", Adam(0.001, (0.9, 0.999), 1.0e-8)";
  EXPECT_EQ(to_string(Optimizer(b, Adam{1e-3})), head + ")");
  EXPECT_EQ(to_string(Optimizer(b, Adam{1e-3}, {.dtype = BFloat16, .shard = true, .statistics = Statistics::averaged})),
            head + ", dtype = BFloat16, shard = true, statistics = averaged)");
  adjust(state, 0.01);
  adjust(inside, 0.01);
  const Net gradient = fresh_net();
  for (int i = 0; i < 3; ++i) {
    update(state, net, gradient);
    update(inside, plain, gradient);
  }
  const std::vector<double> got = values(net.hidden.weight), expected = values(plain.hidden.weight);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12);
}

TEST_F(Ranks, RanksWithAShareEachTrainAsOneWithAll) {
  Rng rng(3);
  const Array x = randn(rng, {3, 16}, Float64), y = randn(rng, {2, 16}, Float64);
  Net net = fresh_net(), alone = fresh_net();
  State state = setup(Optimizer(b, Adam{0.01}), net), state_alone = setup(Adam{0.01}, alone);
  const auto [own_x, own_y] = DataContainer(b, std::tuple{x, y});
  for (int step = 0; step < 20; ++step) {
    const auto [loss, g] = withgradient([&](const Net& m) { return loss_of(m, own_x, own_y); }, net);
    const auto [loss_alone, g_alone] = withgradient([&](const Net& m) { return loss_of(m, x, y); }, alone);
    update(state, net, g);
    update(state_alone, alone, g_alone);
    EXPECT_NEAR(allreduce(b, loss, avg).item(), loss_alone.item(), 1e-9);
  }
  for (const Array& each : fleaves(net)) EXPECT_TRUE(same_everywhere(b, each));
  expect_near(net, alone, 1e-6);
}

TEST_F(Ranks, AccumulatedGradientsAreSentOnce) {
  Net net = fresh_net(), plain = fresh_net();
  State state = setup(OptimiserChain(AccumGrad{2}, Optimizer(b, Descent{0.1})), net),
        inside = setup(Descent{0.1}, plain);
  Net mine = fresh_net();
  mine.out.bias = mine.out.bias + double(rank);
  for (int i = 0; i < 2; ++i) update(state, net, mine);
  Net average = fresh_net();
  average.out.bias = average.out.bias + (n - 1) / 2.0;
  update(inside, plain, average);
  EXPECT_EQ(values(net.out.bias), values(plain.out.bias));
  EXPECT_TRUE(same_everywhere(b, net.out.weight));
}

/// Steps in which gradients are collected before they are exchanged.
template <class Rule, class Alone>
void compare_with_one_rank(const Backend& b, const Rule& rule, const Alone& rule_alone, DType type = Float64) {
  Rng rng(3);
  const Array x = randn(rng, {3, 16}, Float64), y = randn(rng, {2, 16}, Float64);
  Net net = fresh_net(), alone = fresh_net();
  State state = setup(rule, net), state_alone = setup(rule_alone, alone);
  const auto [own_x, own_y] = DataContainer(b, std::tuple{x, y});
  for (int step = 0; step < 7; ++step) {
    update(state, net, gradient([&](const Net& m) { return loss_of(m, own_x, own_y); }, net));
    update(state_alone, alone, gradient([&](const Net& m) { return loss_of(m, x, y); }, alone));
  }
  const std::vector<Array> got = fleaves(net), wanted = fleaves(alone);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(same_everywhere(b, got[i])) << i;
    EXPECT_LT(maximum(abs(got[i] - wanted[i])).item(), type == Float64 ? 1e-9 : 1e-5) << i;
  }
}

TEST_F(Ranks, WhatRulesInFrontHandOnTrainsAsOneWithAll) {
  const Adam adam{.eta = 0.01};
  compare_with_one_rank(b, OptimiserChain(AccumGrad{3}, Optimizer(b, adam)), OptimiserChain(AccumGrad{3}, adam));
  compare_with_one_rank(b, OptimiserChain(WeightDecay{0.1}, AccumGrad{2}, Optimizer(b, adam), SignDecay{0.1}),
                        OptimiserChain(WeightDecay{0.1}, AccumGrad{2}, adam, SignDecay{0.1}));
  compare_with_one_rank(b, OptimiserChain(WeightDecay{0.1}, OptimiserChain(AccumGrad{2}, Optimizer(b, adam))),
                        OptimiserChain(WeightDecay{0.1}, AccumGrad{2}, adam));
  compare_with_one_rank(b, MixedPrecision(Float64, OptimiserChain(AccumGrad{2}, Optimizer(b, adam))),
                        OptimiserChain(AccumGrad{2}, adam));
  compare_with_one_rank(b, MixedPrecision(Float64, Optimizer(b, adam)), adam);
  compare_with_one_rank(b, Lookahead(2, 0.5, OptimiserChain(AccumGrad{2}, Optimizer(b, adam))),
                        Lookahead(2, 0.5, OptimiserChain(AccumGrad{2}, adam)));
  compare_with_one_rank(b, OptimiserChain(AccumGrad{2}, Optimizer(b, adam, {.dtype = Float32})),
                        OptimiserChain(AccumGrad{2}, adam), Float32);
}

TEST_F(Ranks, AStepThatFailsLeavesWhatWasCollected) {
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  Net net = fresh_net(), whole = fresh_net(), part = fresh_net();
  State state = setup(OptimiserChain(AccumGrad{2}, Optimizer(b, Descent{0.1})), net);
  update(state, net, whole);
  const std::string before = to_string(state);
  if (rank == 1) part.out.bias = Array();
  const std::string text = error_of([&] { update(state, net, part); }, ErrorKind::distributed);
  EXPECT_NE(text.find("\"out.bias\""), std::string::npos) << text;
  EXPECT_EQ(to_string(state), before);
  EXPECT_EQ(values(net.out.weight), values(whole.out.weight));
  update(state, net, whole);
  EXPECT_EQ(values(net.out.weight), values(whole.out.weight - 0.1 * whole.out.weight));
}

TEST_F(Ranks, AGradientThatIsOnlyCollectedIsCheckedToo) {
  Net net = fresh_net(), wrong = fresh_net();
  wrong.out.bias = wrong.out.bias / 0.0;
  State state = setup(OptimiserChain(AccumGrad{2}, Optimizer(b, Descent{0.1})), net);
  const std::string before = to_string(state);
  const std::string text = error_of([&] { update(state, net, wrong, {.check = true}); }, ErrorKind::numeric);
  EXPECT_NE(text.find("a gradient must be finite; it is NaN at out.bias"), std::string::npos) << text;
  EXPECT_EQ(to_string(state), before);
}

TEST_F(Ranks, TheNormOfAllGradientsIsThatOfTheAverage) {
  const OptimiserChain rule(ClipGlobalNorm{0.5}, Descent{1});
  Net net = fresh_net(), plain = fresh_net(), mine = fresh_net(), average = fresh_net();
  State state = setup(Optimizer(b, rule), net), inside = setup(rule, plain);
  mine.out.bias = mine.out.bias + double(rank);
  average.out.bias = average.out.bias + (n - 1) / 2.0;
  update(state, net, mine);
  update(inside, plain, average);
  const std::vector<double> got = values(net.out.weight), wanted = values(plain.out.weight);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12);
  EXPECT_TRUE(same_everywhere(b, net.hidden.weight));
  Net later = fresh_net();
  State collected = setup(OptimiserChain(AccumGrad{1}, Optimizer(b, rule)), later);
  update(collected, later, mine);
  EXPECT_EQ(values(later.out.weight), got);
  EXPECT_NE(error_of([&] { setup(Optimizer(b, rule, {.shard = true}), net); }, ErrorKind::argument)
                .find("are on no rank together"),
            std::string::npos);
}

TEST_F(Ranks, GradientsAreSentInTheTypeThatIsAskedFor) {
  Net net = f32(fresh_net()), gradient = f32(fresh_net());
  State state = setup(Optimizer(b, Descent{1.0}, {.dtype = BFloat16}), net);
  gradient.hidden.bias = full({8}, 1 + rank / 1024.0, Float32);  // less than what BFloat16 tells from 1
  update(state, net, gradient);
  EXPECT_EQ(net.hidden.bias.dtype(), Float32);
  EXPECT_EQ(values(net.hidden.bias), std::vector<double>(8, -1));
  EXPECT_EQ(error_of([&] { setup(Optimizer(b, Descent{1.0}, {.dtype = Int32}), net); }, ErrorKind::argument),
            "Optimizer: gradients are sent in a floating type; got Int32; BFloat16 halves what is sent of Float32");
}

TEST_F(Ranks, AMissingGradientIsNamedAndTheModelStays) {
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  Net net = fresh_net(), gradient = fresh_net();
  State state = setup(Optimizer(b, Descent{0.1}), net);
  if (rank == 1) gradient.hidden.bias = Array();
  EXPECT_EQ(
      error_of([&] { update(state, net, gradient); }, ErrorKind::distributed),
      "update: every rank must have gradients of the same parameters; at position 1 rank 0 has \"hidden.bias\" "
      "(8) Float64, rank 1 has \"out.weight\" (2, 8) Float64; let every rank compute the same loss of the same model");
  EXPECT_EQ(values(net.out.weight), values(fresh_net().out.weight));
  barrier(b);
}

/// What is held elsewhere cannot be overwritten, so that the step needs memory; one rank has none left.
template <class Rule> void expect_made_by_none(const Backend& b, const Rule& rule) {
  seed(7);
  Dense model(512, 512);
  State state = setup(Optimizer(b, rule), model);
  const auto gradient_of = [&](double x) { return fmap([&](const Array& p) { return full(p.shape(), x); }, model); };
  for (int step = 0; step < 2; ++step) update(state, model, gradient_of(1.0 + local_rank(b)));
  const Dense held = model;
  const State before = state;
  const std::vector<double> weight = values(model.weight);
  const Dense gradient = gradient_of(2.0);
  const Device device = model.weight.device();
  eval();
  trim(device);
  const MemoryStats usage = memory_stats(device);
  if (local_rank(b) == 1) set_memory_limit(device, usage.live + (int64_t{600} << 10));
  const std::string text = error_of([&] { update(state, model, gradient); }, ErrorKind::memory);
  set_memory_limit(device, 0);
  EXPECT_NE(text.find("(on rank 1)"), std::string::npos) << text;
  EXPECT_EQ(values(model.weight), weight);
  EXPECT_EQ(to_string(state), to_string(before));
  update(state, model, gradient);
  EXPECT_NE(values(model.weight), weight);
  check_synchronized(b, model);
  check_synchronized(b, state);
}

TEST_F(Ranks, AStepThatOneRankHasNoMemoryForIsMadeByNone) {
  if (n == 1) GTEST_SKIP() << "needs two ranks";
  expect_made_by_none(b, Adam{});
  expect_made_by_none(b, Momentum{});
}

/// From some step on it keeps the gradient, without having needed memory before.
bool keeps_gradients = false;
struct Keeper {
  struct State {
    Array kept;
  };
  State init(const Array&) const { return {zeros({1})}; }
  Array apply(State& state, const Array&, const Array& g) const {
    if (keeps_gradients) state.kept = 2.0 * g;
    return g;
  }
};

/// Started by ranks_test.py, as what follows: no rank was asked, the others have made the step.
TEST_F(Ranks, DISABLED_ARankThatFallsOutOfStepIsToldOfByAll) {
  Dense model(512, 512);
  rosin::State state = setup(Optimizer(b, Keeper{}), model);
  const Dense gradient = fmap([](const Array& p) { return full(p.shape(), 1.0f); }, model);
  for (int step = 0; step < 2; ++step) update(state, model, gradient);
  const std::vector<double> weight = values(model.weight);
  const Device device = model.weight.device();
  trim(device);
  if (rank == 1) set_memory_limit(device, memory_stats(device).live + (int64_t{100} << 10));
  keeps_gradients = true;
  const std::string own = rank == 1 ? error_of([&] { update(state, model, gradient); }, ErrorKind::memory) : "";
  if (rank != 1) update(state, model, gradient);
  EXPECT_EQ(values(model.weight) == weight, rank == 1) << own;
  const std::string text = error_of([&] { update(state, model, gradient); }, ErrorKind::distributed);
  EXPECT_NE(text.find("a step that the others have made failed here: "), std::string::npos) << text;
}

/// Rank 1 is gone in the middle of a training, and the others are told.
TEST_F(Ranks, DISABLED_ARankIsKilled) {
  if (rank == 1) std::raise(SIGKILL);
  const std::string text = error_of([&] { allreduce(b, ones({1000}), avg); }, ErrorKind::distributed);
  EXPECT_TRUE(text.starts_with("allreduce: ")) << text;
  EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  EXPECT_EQ(error_of([&] { barrier(b); }, ErrorKind::distributed).substr(0, 9), "barrier: ");
}

TEST_F(Ranks, DISABLED_ARankSaysWhyItCannotGoOn) {
  if (rank == 1) abort(b, "there is no data left");
  const std::string text = error_of([&] { barrier(b); }, ErrorKind::distributed);
  EXPECT_NE(text.find("there is no data left"), std::string::npos) << text;
}

}  // namespace
}  // namespace rosin::distributed
