// Shares of different sizes, some of no observation: no rank waits for another one for ever, and nothing becomes NaN.
// On the CPU, or on the device that ROSIN_TEST_DEVICE names.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "ranks.hpp"

namespace rosin::distributed {
namespace {

class UnevenRanks : public Ranks {
 protected:
  void SetUp() override {
    const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
    if (!wanted) return;
    const int count = static_cast<int>(devices(wanted).size());
    device_ = get_device(wanted, rank % count).with(keep);
    math_mode(MathMode::exact);
  }
  Device device_ = cpu_device().with(keep);
};

struct Net {
  Dense hidden{3, 8};
  BatchNorm norm{8, tanh};
  Dense out{8, 2};
  Array operator()(const Array& x) const { return out(norm(hidden(x))); }
};

Net fresh_net(BatchNorm norm) {
  Rng rng(7);
  Net net;
  for (Array* x : {&net.hidden.weight, &net.out.weight}) *x = randn(rng, x->shape());
  net.norm = std::move(norm);
  return net;
}

/// Of a share, so that the average over ranks is the mean over all of `observations`.
Array share_of_loss(const Net& m, const Array& x, const Array& y, int ranks, int64_t observations) {
  return sum(square(m(x) - y)) * (static_cast<double>(ranks) / static_cast<double>(observations));
}

TEST_F(UnevenRanks, SyncBatchNormTakesSharesOfNoObservation) {
  constexpr int64_t observations = 5;  // 2, 2, 1 and none for four ranks
  Rng rng(3);
  const Array x = randn(rng, {3, observations}), y = randn(rng, {2, observations});
  Net alone = fresh_net(BatchNorm(8, tanh)), net = fresh_net(SyncBatchNorm(b, 8, tanh)) | device_;
  State state = setup(Optimizer(b, Descent{0.05}), net), state_alone = setup(Descent{0.05}, alone);
  const auto [own_x, own_y] = getobs(DataContainer(b, std::tuple{x, y})) | device_;
  for (int step = 0; step < 5; ++step) {
    update(state, net, gradient([&](const Net& m) { return share_of_loss(m, own_x, own_y, n, observations); }, net));
    update(state_alone, alone, gradient([&](const Net& m) { return share_of_loss(m, x, y, 1, observations); }, alone));
  }
  expect_near(net | cpu_device(), alone, 2e-5);
  check_synchronized(b, net);
}

TEST_F(UnevenRanks, SyncBatchNormOfNothingAtAllMovesNoStatistics) {
  const Net net = fresh_net(SyncBatchNorm(b, 8)) | device_;
  const Array nothing = zeros({3, 0}) | device_;
  const auto slopes = gradient([&](const Net& m) { return sum(m(nothing)); }, net);
  EXPECT_EQ(values(slopes.hidden.weight), std::vector<double>(24, 0.0));
  EXPECT_EQ(values(net.norm.mean.value()), std::vector<double>(8, 0.0));
  EXPECT_EQ(values(net.norm.variance.value()), std::vector<double>(8, 1.0));
}

TEST_F(UnevenRanks, ALastBatchOfFewerObservationsThanRanksSpoilsNothing) {
  Rng rng(3);
  const std::tuple data{randn(rng, {3, 9}), randn(rng, {2, 9})};
  DataLoader loader(data, {.batchsize = 4, .shuffle = true, .rng = Rng{5}, .part = batch_part(b)});
  for (const bool together : {false, true}) {
    Net net = fresh_net(together ? SyncBatchNorm(b, 8) : BatchNorm(8)) | device_;
    if (!together) testmode(net.norm);  // whose statistics are those of one observation
    State state = setup(Optimizer(b, Adam{.eta = 0.01}), net);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& [x, y] : loader) {
        const Array in = x | device_, wanted = y | device_;
        update(state, net, gradient([&](const Net& m) { return mean(square(m(in) - wanted)); }, net));
      }
    }
    for (const Array& array : fleaves(net)) EXPECT_TRUE(std::isfinite(sum(array).item())) << together;
    check_synchronized(b, net.hidden);
    check_synchronized(b, net.out);
  }
}

}  // namespace
}  // namespace rosin::distributed
