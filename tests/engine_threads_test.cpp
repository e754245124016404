// Results do not depend on the number of threads, nor on who evaluates: training steps, ops with large arrays, and
// models that several threads use at once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

using Values = std::vector<float>;

struct Network {
  Array w, b, v, c;
  Array operator()(const Array& x) const { return matmul(v, tanh(matmul(w, x) + b)) + c; }
};

Network network(int64_t inputs) {
  Rng rng(5);
  const auto draw = [&](const Shape& shape) { return normal(rng, shape, 0, 0.1); };
  Network made{draw({64, inputs}), draw({64}), draw({10, 64}), draw({10})};
  eval();
  return made;
}

Array loss_of(const Network& m, const Array& x) { return -mean(sum(logsoftmax(m(x)), 0)) + mean(m.w * m.w); }

/// Weights after some steps of training on the CPU with this many threads.
Values trained(int threads, bool cached) {
  set_num_threads(threads);
  set_plan_cache(cached);
  Network model = network(100);
  auto state = setup(Adam{.eta = 1e-2}, model);
  Rng rng(9);
  for (int i = 0; i < 12; ++i) {
    const Array x = uniform(rng, {100, 150 + i % 3}, -1, 1);
    const auto [loss, g] = withgradient([&](const Network& m) { return loss_of(m, x); }, model);
    update(state, model, g);
  }
  const Values w = model.w.to_vector(), v = model.v.to_vector();
  set_num_threads(0);
  set_plan_cache(true);
  Values all(w);
  all.insert(all.end(), v.begin(), v.end());
  return all;
}

bool same_bits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(EngineThreads, TrainingGivesTheSameBitsForAnyNumberOfThreads) {
  const Values one = trained(1, true);
  for (int threads : {2, 3, 7}) EXPECT_TRUE(same_bits(one, trained(threads, true))) << threads;
  EXPECT_TRUE(same_bits(one, trained(3, false)));
}

/// Results of ops whose work is cut into many pieces.
std::vector<Values> large_results(int threads) {
  set_num_threads(threads);
  Rng rng(1);
  const Array x = normal(rng, {1003, 517}, 0, 1), y = uniform(rng, {517, 301}, 0, 1), k = randint(rng, 0, 517, {900});
  std::vector<Values> results;
  for (const Array& r :
       {sum(x), sum(x, 0), sum(x, 1), mean(exp(x) * 2, 1), softmax(x), softmax(x, 1), matmul(x, y), cumsum(x, 1),
        gather(x, k), maximum(x, {0, 1}), var(x, 1), logsumexp(x, 1), prod(slice(x, 0, 0, 9), 1),
        sum(cast(x, Float16), 1), sort(x, 0), normal(rng, {300, 300}, 0, 1), transpose(x) * 2,
        scatter_add(zeros({1003, 517}), k, gather(x, k)), sum(transpose(x) * transpose(x), 1)}) {
    results.push_back(r.to_vector());
  }
  set_num_threads(0);
  return results;
}

TEST(EngineThreads, LargeOpsGiveTheSameBitsForAnyNumberOfThreads) {
  const std::vector<Values> one = large_results(1);
  for (int threads : {2, 3, 7}) {
    const std::vector<Values> many = large_results(threads);
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(same_bits(one[i], many[i])) << threads << " threads, result " << i;
  }
}

TEST(EngineThreads, OneConstModelServesManyThreads) {
  set_num_threads(3);
  const Network model = network(20);
  const Array x = reshape(sin(cast(arange(20 * 8), Float32)), {20, 8});
  eval();
  const Values out = model(x).to_vector();
  const Values slope = gradient([&](const Network& m) { return loss_of(m, x); }, model).w.to_vector();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        if ((i + t) % 2 == 0 && !same_bits(model(x).to_vector(), out)) wrong.fetch_add(1);
        if ((i + t) % 2 == 1 &&
            !same_bits(gradient([&](const Network& m) { return loss_of(m, x); }, model).w.to_vector(), slope)) {
          wrong.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  set_num_threads(0);
  EXPECT_EQ(wrong, 0);
}

TEST(EngineThreads, ThreadsTrainModelsOfTheirOwn) {
  const auto train_one = [](int64_t batch) {
    Network model = network(30);
    auto state = setup(Momentum{}, model);
    Rng rng(3);
    for (int i = 0; i < 15; ++i) {
      const Array x = uniform(rng, {30, batch}, 0, 1);
      const auto g = gradient([&](const Network& m) { return loss_of(m, x); }, model);
      update(state, model, g);
    }
    return model.w.to_vector();
  };
  const Values expected[] = {train_one(8), train_one(9)};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (!same_bits(train_one(8 + t % 2), expected[t % 2])) wrong.fetch_add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(EngineThreads, SnapshotsOfATrainingModelAreReadByAnotherThread) {
  Network model = network(16);
  auto state = setup(Descent{.eta = 0.05}, model);
  const Array x = reshape(cos(cast(arange(16 * 4), Float32)), {16, 4});
  std::vector<Network> snapshots;
  std::vector<Values> values;
  for (int i = 0; i < 20; ++i) {
    update(state, model, gradient([&](const Network& m) { return loss_of(m, x); }, model));
    if (i % 4 == 0) snapshots.push_back(model), values.push_back(model.w.to_vector());
  }
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    for (int round = 0; round < 20; ++round) {
      for (size_t i = 0; i < snapshots.size(); ++i) wrong += !same_bits(snapshots[i].w.to_vector(), values[i]);
    }
  });
  for (int i = 0; i < 40; ++i) update(state, model, gradient([&](const Network& m) { return loss_of(m, x); }, model));
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(same_bits(model.w.to_vector(), values.back()));
}

}  // namespace
}  // namespace rosin
