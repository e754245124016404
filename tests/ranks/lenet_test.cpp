// LeNet-5 with statistics of all ranks' batches: ranks with a share of each batch train as one rank with all.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include <rosin/rosin.hpp>

#include "ranks.hpp"

namespace rosin::distributed {
namespace {

/// LeCun et al. (1998), of pictures of 12x12, after whose second pool each of the 16 planes is one number.
Chain lenet(BatchNorm first, BatchNorm second) {
  seed(11);
  return f64(Chain(Conv({5, 5}, 1, 6, {.pad = 2}), std::move(first), MaxPool({2, 2}), Conv({5, 5}, 6, 16),
                   std::move(second), MaxPool({2, 2}), flatten, Dense(16, 120, relu), Dense(120, 84, relu),
                   Dense(84, 10)));
}

TEST_F(Ranks, ALeNetWithSharedStatisticsTrainsAsOneWithAll) {
  constexpr int64_t most_pictures = 8;
  const int64_t batch = most_pictures / n * n;  // the same number for each rank
  Rng rng(5);
  const Array x = randn(rng, {12, 12, 1, batch}, Float64);
  const Array y = cast(onehot(randint(rng, 0, 10, {batch}), 10), Float64);
  Chain net = lenet(SyncBatchNorm(b, 6, relu), SyncBatchNorm(b, 16, relu)),
        alone = lenet(BatchNorm(6, relu), BatchNorm(16, relu));
  State state = setup(Optimizer(b, Momentum{0.05}), net), state_alone = setup(Momentum{0.05}, alone);
  const auto [own_x, own_y] = DataContainer(b, std::tuple{x, y});
  std::vector<double> losses;
  for (int step = 0; step < 8; ++step) {
    const auto loss = [](const Chain& m, const Array& in, const Array& out) { return logitcrossentropy(m(in), out); };
    const auto [own, g] = withgradient([&](const Chain& m) { return loss(m, own_x, own_y); }, net);
    const auto [whole, g_alone] = withgradient([&](const Chain& m) { return loss(m, x, y); }, alone);
    update(state, net, g);
    update(state_alone, alone, g_alone);
    losses.push_back(whole.item());
    EXPECT_EQ(own.dtype(), Float64);
    EXPECT_NEAR(allreduce(b, own, avg).item(), losses.back(), 1e-6) << step;
  }
  EXPECT_LT(losses.back(), 0.8 * losses.front());
  expect_near(net, alone, 1e-6);
  for (const Array& each : fleaves(net)) EXPECT_TRUE(same_everywhere(b, each));
}

}  // namespace
}  // namespace rosin::distributed
