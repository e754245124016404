// Arrays and models on devices: what ranks exchange lies there, and what they get is there. tests/ranks_test.py says in
// ROSIN_TEST_DEVICE of which back end ("reference").
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "../error_testing.hpp"
#include "ranks.hpp"

namespace rosin::distributed {
namespace {

class DeviceRanks : public Ranks {
 protected:
  void SetUp() override {
    const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
    if (!wanted) GTEST_SKIP() << "ROSIN_TEST_DEVICE names no back end";
    ASSERT_TRUE(functional(wanted)) << why_not(wanted);
    const int count = static_cast<int>(devices(wanted).size());
    device_ = get_device(wanted, rank % count).with(keep);
    math_mode(MathMode::exact);
  }
  const Device& device() const { return device_; }
  /// Whether x is on that device.
  bool is_there(const Array& x) const { return x.device().position() == device_.position(); }

 private:
  Device device_;
};

struct Net {
  Dense hidden{3, 8, tanh};
  Dense out{8, 2};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

Net fresh_net() {
  Rng rng(7);
  Net net;
  for (Array* x : {&net.hidden.weight, &net.out.weight}) *x = randn(rng, x->shape());
  return net;
}

TEST_F(DeviceRanks, CollectivesLeaveArraysWhereTheyAre) {
  const Array x = full({4, 3}, rank + 1, Float32) | device();
  const double sum = n * (n + 1) / 2.0;
  const auto expect = [&](const Array& got, const Shape& shape, double value) {
    EXPECT_TRUE(is_there(got));
    EXPECT_EQ(got.shape(), shape);
    EXPECT_EQ(values(got), std::vector<double>(static_cast<size_t>(shape.count()), value));
  };
  expect(allreduce(b, x, Reduction::sum), {4, 3}, sum);
  expect(allreduce(b, x * 2, avg), {4, 3}, 2 * sum / n);
  expect(allreduce(b, x, Reduction::maximum), {4, 3}, n);
  for (int root = 0; root < n; ++root) {
    expect(bcast(b, x, {.root = root}), {4, 3}, root + 1);
    expect(reduce(b, x, Reduction::sum, {.root = root}), {4, 3}, rank == root ? sum : rank + 1);
  }
  expect(reduce_scatter(b, full({2, 2 * n}, rank + 1, Float32) | device(), Reduction::sum), {2, 2}, sum);
  const Array all = allgather(b, x);
  EXPECT_TRUE(is_there(all));
  std::vector<double> wanted;
  for (int other = 0; other < n; ++other) wanted.insert(wanted.end(), 12, other + 1);
  EXPECT_EQ(values(all), wanted);
  expect(x, {4, 3}, rank + 1);
  EXPECT_EQ(allreduce(b, zeros({0}) | device(), Reduction::sum).count(), 0);
}

TEST_F(DeviceRanks, EveryTypeIsReducedThere) {
  for (const DType type : {UInt8, Int8, Int32, Int64, Float16, BFloat16, Float32}) {
    const Array sum = allreduce(b, cast(full({7}, rank + 1, Float32), type) | device(), Reduction::sum);
    EXPECT_TRUE(is_there(sum));
    EXPECT_EQ(sum.dtype(), type);
    EXPECT_EQ(values(sum), std::vector<double>(7, n * (n + 1) / 2)) << to_string(type);
  }
}

/// Every array differs from rank to rank before, and the steps are those of one process of the CPU with all data.
TEST_F(DeviceRanks, RanksWithAShareEachTrainAsOneWithAll) {
  Rng rng(3);
  const Array x = randn(rng, {3, 12}), y = randn(rng, {2, 12});
  const auto loss = [](const Net& m, const Array& in, const Array& wanted) { return mean(square(m(in) - wanted)); };
  for (const bool shard : {false, true}) {
    Net alone = fresh_net(), net = fresh_net();
    if (rank != 0) net.out.bias = net.out.bias + double(rank);
    net = synchronize(b, net | device());
    ASSERT_TRUE(is_there(net.out.bias));
    State state = setup(Optimizer(b, Adam{0.01}, {.shard = shard}), net), state_alone = setup(Adam{0.01}, alone);
    state = synchronize(b, state);
    const auto [own_x, own_y] = getobs(DataContainer(b, std::tuple{x, y})) | device();
    for (int step = 0; step < 10; ++step) {
      update(state, net, gradient([&](const Net& m) { return loss(m, own_x, own_y); }, net));
      update(state_alone, alone, gradient([&](const Net& m) { return loss(m, x, y); }, alone));
    }
    EXPECT_TRUE(is_there(net.hidden.weight));
    EXPECT_TRUE(same_everywhere(b, net.hidden.weight));
    const std::vector<double> got = values(net.out.weight), wanted = values(alone.out.weight);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 2e-5);
    check_synchronized(b, net);
    EXPECT_EQ(to_string(gathered(state)).find("on rank"), std::string::npos);
  }
}

/// Two messages: the second is of the first layer alone, whose gradients the reverse walk comes to last.
struct Deep {
  Dense first{16, 512, tanh}, second{512, 512, tanh}, out{512, 2};
  Array operator()(const Array& x) const { return out(second(first(x))); }
};

/// The parameters after some steps, with data of this seed. Where messages are not to go `beside` the reverse walk,
/// gradients are computed before.
template <class Rule>
std::vector<std::vector<float>> train_deep(const Device& device, const Rule& rule, int data, bool beside) {
  constexpr int steps = 5;  // the last ones are graphs, where the device has them
  seed(4);
  Deep net = Deep{} | device;
  State state = setup(rule, net);
  seed(static_cast<uint64_t>(data));
  for (int step = 0; step < steps; ++step) {
    const auto [x, y] = std::tuple{randn({16, 4}), randn({2, 4})} | device;
    const auto grad = gradient([&, &in = x, &wanted = y](const Deep& m) { return mean(square(m(in) - wanted)); }, net);
    if (!beside) eval();
    update(state, net, grad);
  }
  std::vector<std::vector<float>> all;
  for (const Array& x : fleaves(net)) all.push_back(x.to_vector<float>());
  return all;
}

TEST_F(DeviceRanks, MessagesBesideTheReverseWalkChangeNoBit) {
  const auto expect_same = [&](const auto& rule) {
    EXPECT_EQ(train_deep(device(), rule, rank, true), train_deep(device(), rule, rank, false));
  };
  expect_same(Optimizer(b, Adam{}));
  expect_same(Optimizer(b, Adam{}, {.dtype = BFloat16}));
  expect_same(Optimizer(b, Adam{}, {.shard = true}));
  expect_same(OptimiserChain(AccumGrad{2}, Optimizer(b, Adam{})));
}

TEST_F(DeviceRanks, MessagesBesideTheReverseWalkTrainAsOneRank) {
  const auto got = train_deep(device(), Optimizer(b, Adam{}), 1, true), wanted = train_deep(Device(), Adam{}, 1, true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t k = 0; k < wanted[i].size(); ++k) ASSERT_NEAR(got[i][k], wanted[i][k], 2e-5) << i << ' ' << k;
  }
}

/// The weights of the second layer have 1 MiB: each rank has a part of their state.
TEST_F(DeviceRanks, PartsOfAStateTrainAsOneRank) {
  const State state = setup(Optimizer(b, Adam{}, {.shard = true}), Deep{} | device());
  EXPECT_EQ(to_string(state).find(" of 262144)") != std::string::npos, n > 1) << to_string(state);
  const auto got = train_deep(device(), Optimizer(b, Adam{}, {.shard = true}), 1, true),
             wanted = train_deep(Device(), Adam{}, 1, true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t k = 0; k < wanted[i].size(); ++k) ASSERT_NEAR(got[i][k], wanted[i][k], 2e-5) << i << ' ' << k;
  }
}

TEST_F(DeviceRanks, SumsOfSeveralStepsTrainAsOneRank) {
  const Momentum rule{.eta = 0.1};
  const auto got = train_deep(device(), OptimiserChain(AccumGrad{2}, Optimizer(b, rule)), 1, true),
             wanted = train_deep(Device(), OptimiserChain(AccumGrad{2}, rule), 1, true);
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t k = 0; k < wanted[i].size(); ++k) ASSERT_NEAR(got[i][k], wanted[i][k], 2e-5) << i << ' ' << k;
  }
}

struct Words {
  Embedding table{8, 16};
  BatchNorm norm{16};
  Deep deep;
  Array operator()(const Array& indices) const { return deep(norm(table(indices))); }
};

std::vector<std::vector<float>> all_values(const Words& net, const State& state) {
  std::vector<std::vector<float>> all;
  for (const Array& x : fleaves(net)) all.push_back(x.to_vector<float>());
  for (const Array& x : fleaves(state)) all.push_back(x.to_vector<float>());
  return all;
}

/// All messages are through when rank 1 finds what is wrong.
TEST_F(DeviceRanks, AStepThatFailsOnOneRankIsMadeByNone) {
  if (n == 1) GTEST_SKIP() << "alone nothing is sent";
  seed(4);
  Words net = Words{} | device();
  State state = setup(Optimizer(b, Adam{}), net);
  const auto step = [&](const std::vector<int32_t>& indices) {
    const Array x = Array(indices, {static_cast<int64_t>(indices.size())}) | device();
    update(state, net, gradient([&](const Words& m) { return mean(square(m(x))); }, net));
  };
  for (int i = 0; i < 4; ++i) step({rank, i, 7});
  const auto before = all_values(net, state);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string text = error_of([&] { step({1, rank == 1 ? 8 : 3, 2}); }, ErrorKind::argument);
    EXPECT_NE(text.find("8"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(" (on rank 1)")) << text;
    EXPECT_EQ(all_values(net, state), before);
  }
  step({rank, 3, 2});
  EXPECT_TRUE(same_everywhere(b, net.deep.first.weight));
  EXPECT_NE(all_values(net, state), before);
}

/// The pretended CUDA has 8 GiB.
TEST_F(DeviceRanks, AStepForWhichOneRankHasNoRoomIsMadeByNone) {
  if (n == 1 || device().backend() != "CUDA") GTEST_SKIP() << "needs two ranks, and a device whose memory is known";
  seed(4);
  Deep net = Deep{} | device();
  State state = setup(Optimizer(b, Adam{}), net);
  const Array x = full({16, 4}, rank + 1, Float32) | device(), column = zeros({1 << 17, 1}) | device();
  const auto step = [&](bool needs_room) {
    const auto loss = [&](const Deep& m) {
      const Array small = mean(square(m(x)));
      return needs_room ? small + mean(square(matmul(column + small, transpose(column)))) : small;
    };
    update(state, net, gradient(loss, net));
  };
  step(false);
  const std::vector<double> before = values(net.out.weight);
  const std::string text = error_of([&] { step(rank == 1); }, ErrorKind::memory);
  EXPECT_TRUE(text.ends_with(" (on rank 1)")) << text;
  EXPECT_EQ(values(net.out.weight), before);
  step(false);
  EXPECT_TRUE(same_everywhere(b, net.out.weight));
}

/// Started by ranks_test.py over NCCL, which takes arrays of devices alone.
TEST_F(DeviceRanks, DISABLED_ARankWhoseArrayIsElsewhereIsNamed) {
  const Array x = full({100}, 1, Float32);
  const std::string text =
      error_of([&] { allreduce(b, rank == 1 ? x : x | device(), Reduction::sum); }, ErrorKind::distributed);
  EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
}

/// ROSIN_TEST_STRAIGHT says that the transport takes memory of the device; else all goes over the host, once each way.
TEST_F(DeviceRanks, NothingGoesOverTheHostWhereTheTransportTakesItStraight) {
  if (n == 1) GTEST_SKIP() << "alone nothing is sent";
  const Array x = full({1000}, rank + 1, Float32) | device();
  eval(x);
  const Stats before = stats();
  eval(allreduce(b, x, Reduction::sum));
  const Stats after = stats();
  const int64_t bytes = std::getenv("ROSIN_TEST_STRAIGHT") ? 0 : 4000;
  EXPECT_EQ(after.from_devices - before.from_devices, bytes);
  EXPECT_EQ(after.to_devices - before.to_devices, bytes);
}

TEST_F(DeviceRanks, ManyStepsGoOneAfterTheOther) {
  Array x = full({1000}, rank + 1, Float32) | device();
  for (int turn = 0; turn < 20; ++turn) x = allreduce(b, x * 0.5, avg) + 1;
  EXPECT_EQ(values(x), std::vector<double>(1000, values(x)[0]));
  EXPECT_NEAR(values(x)[0], 2 + ((n + 1) / 2.0 - 2) * std::pow(0.5, 20), 1e-5);
}

}  // namespace
}  // namespace rosin::distributed
