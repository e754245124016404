// One const model that many threads use at once, for gradients and for inference, beside a training that began with the
// same arrays. ThreadSanitizer looks at it too.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/onehot.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>

namespace rosin {
namespace {

using Values = std::vector<float>;

struct Net {
  Dense first{6, 16, relu};
  BatchNorm norm{16};
  Dense last{16, 3};
  Array operator()(const Array& x) const { return last(norm(first(x))); }
};

struct Batch {
  Array x, y;
  Array loss(const Net& m) const { return logitcrossentropy(m(x), y); }
};

Batch some_batch() {
  Rng rng(3);
  Batch batch{randn(rng, {6, 12}), onehotbatch(randint(rng, 0, 3, {12}), 3)};
  eval();
  return batch;
}

/// What a thread gets of the model: its results without a gradient call, and its gradient.
struct Results {
  Values output, slope;
  bool operator==(const Results&) const = default;
};

Results results_of(const Net& model, const Batch& batch, bool reads_inside) {
  const auto f = [&](const Net& m) {
    const Array loss = batch.loss(m);
    if (reads_inside) loss.item();
    return loss;
  };
  const Array output = model(batch.x);
  const Net slope = gradient(f, model);
  return {output.to_vector(), slope.first.weight.to_vector()};
}

TEST(SharedModel, IsUsedByManyThreadsBesideATraining) {
  seed(4);
  const Net shared;
  const Batch batch = some_batch();
  Net trained = shared;
  State state = setup(Adam{1e-2}, trained);
  const Results want = results_of(shared, batch, false);
  constexpr int count = 16;
  std::atomic<int> wrong{0}, running{count};
  std::latch started(count + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      started.arrive_and_wait();
      for (int i = 0; i < 5; ++i) {
        if (!(results_of(shared, batch, (i + t) % 2 == 0) == want)) wrong.fetch_add(1);
      }
      running.fetch_sub(1);
    });
  }
  started.count_down();
  for (int step = 0; step < 10 || running.load() > 0; ++step) {
    const auto [loss, g] = withgradient([&](const Net& m) { return batch.loss(m); }, trained);
    update(state, trained, g);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(results_of(shared, batch, true), want);
  EXPECT_NE(trained.first.weight.to_vector(), shared.first.weight.to_vector());
}

}  // namespace
}  // namespace rosin
