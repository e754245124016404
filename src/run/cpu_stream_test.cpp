// Tests of the CPU's stream: updates of small models run behind their thread, and nobody can tell but by the clock.
#include "run/cpu_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "../tests/sanitizer_testing.hpp"
#include "graph/context.hpp"
#include "graph/memory.hpp"

#if __has_include(<sys/wait.h>)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace rosin {
namespace {

struct Net {
  Dense hidden;
  Dense out;
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

using Values = std::vector<float>;

/// A small net in training; all of it begins alike.
struct Training {
  Net net;
  State state;
  Array x, y, loss;

  Training() {
    Rng rng(7);
    net = {Dense(normal(rng, {5, 3}, 0, 1), zeros({5}), tanh), Dense(normal(rng, {2, 5}, 0, 1), zeros({2}))};
    state = setup(Adam{}, net);
    x = normal(rng, {3, 10}, 0, 1);
    y = normal(rng, {2, 10}, 0, 1);
    eval();
  }
  void step() {
    const auto [now, gradient] = withgradient([&](const Net& m) { return mse(m(x), y); }, net);
    update(state, net, gradient);
    loss = now;
  }
  Values weights() const {
    Values all = net.hidden.weight.to_vector();
    const Values rest = net.out.weight.to_vector();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }
};

uint64_t runs_behind() { return CpuStream::instance().finished(); }

class CpuStreamTest : public testing::Test {
 protected:
  CpuStreamTest() {
    set_num_threads(2);
    CpuStream::instance().set_patience(1 << 30);  // slow steps go behind too
  }
  ~CpuStreamTest() override {
    CpuStream::instance().set_patience(4000);
    set_num_threads(0);
  }

  /// Steps until the stream has taken some runs: its thread may need a while to begin.
  static void warm(Training& training, uint64_t runs = 20) {
    const uint64_t before = runs_behind();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (runs_behind() < before + runs && std::chrono::steady_clock::now() < end) training.step();
    ASSERT_GE(runs_behind(), before + runs) << "no run went behind";
  }

  static Values trained(int steps) {
    Training training;
    for (int i = 0; i < steps; ++i) training.step();
    return training.weights();
  }
};

/// What a loop that looks at its results now and then sees, and the weights at its end.
Values trained_and_read() {
  Training training;
  Values seen;
  for (int i = 0; i < 600; ++i) {
    training.step();
    if (i % 197 == 5) seen.push_back(training.loss.item<float>());
    if (i % 231 == 7) seen.push_back(training.weights()[3]);
    if (i % 250 == 9) seen.push_back(training.net(training.x).to_vector()[1]);
  }
  const Values weights = training.weights();
  seen.insert(seen.end(), weights.begin(), weights.end());
  return seen;
}

TEST_F(CpuStreamTest, ResultsAreThoseOfOneThread) {
  Training other;
  warm(other);
  const uint64_t before = runs_behind();
  const Values behind = trained_and_read();
  EXPECT_GT(runs_behind(), before);
  set_num_threads(1);
  const uint64_t alone = runs_behind();
  EXPECT_EQ(behind, trained_and_read());
  EXPECT_EQ(runs_behind(), alone) << "one thread runs its plans by itself";
}

/// Memory of a user that is spoiled, as freed memory would be, when it is let go.
struct Spoiled {
  Values values;
  ~Spoiled() { std::fill(values.begin(), values.end(), 1e30f); }
};

TEST_F(CpuStreamTest, BorrowedMemoryIsKeptUntilTheRunThatReadsItIsOver) {
  const auto trained_on = [](bool borrowed) {
    Training training;
    for (int i = 0; i < 300; ++i) {
      auto input = std::make_shared<Spoiled>();
      for (int k = 0; k < 30; ++k) input->values.push_back(static_cast<float>((i + k) % 7) * 0.25f);
      training.x = borrowed ? Array::borrow(input->values.data(), {3, 10}, input) : Array(input->values, {3, 10});
      input.reset();
      training.step();
      training.x = {};
    }
    return training.weights();
  };
  Training other;
  warm(other);
  const uint64_t before = runs_behind();
  const Values weights = trained_on(true);
  EXPECT_GT(runs_behind(), before);
  EXPECT_EQ(weights, trained_on(false));
}

TEST_F(CpuStreamTest, EvalReturnsWhenAllIsThere) {
  Training training;
  warm(training);
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 20; ++k) training.step();
    if (i % 2 == 0) eval();
    else eval(training.net.out.weight);
    EXPECT_TRUE(is_over(training.net.out.weight.node()->buffer->written_by));
  }
}

TEST_F(CpuStreamTest, MemoryInUseIsNotGivenAway) {
  Training training;
  warm(training);
  const Values numbers(static_cast<size_t>(training.net.hidden.weight.count()), 3);
  for (int i = 0; i < 500; ++i) {
    training.step();
    const Net copy = training.net;
    training.loss = Array();
    std::vector<Array> fresh;  // as large as the gradients that the step has dropped
    for (int k = 0; k < 6; ++k) fresh.emplace_back(numbers, training.net.hidden.weight.shape());
    training.step();
    for (const Array& array : fresh) ASSERT_EQ(array.to_vector(), numbers);
  }
  const Values found = training.weights();
  for (float value : found) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(CpuStreamTest, WhatEndsWhileItRunsIsKept) {
  for (int i = 0; i < 20; ++i) {
    Training training;
    warm(training, 3);
  }
  eval();
}

TEST_F(CpuStreamTest, ThreadsTrainBesideEachOther) {
  const Values expected = trained(400);
  std::vector<Values> found(3);
  std::vector<std::thread> threads;
  for (Values& weights : found) threads.emplace_back([&] { weights = trained(400); });
  for (std::thread& thread : threads) thread.join();
  for (const Values& weights : found) EXPECT_EQ(weights, expected);
}

TEST_F(CpuStreamTest, AnotherThreadReadsWhatIsOnItsWay) {
  Training training;
  warm(training);
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 20; ++k) training.step();
    const Array weight = training.net.hidden.weight;
    Values there;
    std::thread([&] { there = weight.to_vector(); }).join();
    EXPECT_EQ(there, weight.to_vector());
  }
}

#if __has_include(<sys/wait.h>)  // a system that forks
TEST_F(CpuStreamTest, AForkedChildGoesOn) {
  if (!child_may_start_threads) GTEST_SKIP() << "no threads start in a forked child here";
  Training training;
  warm(training);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  for (int i = 0; i < 300; ++i) training.step();
  const Values weights = training.weights();
  if (child == 0) _exit(std::isfinite(weights[0]) && weights.size() == 25 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST_F(CpuStreamTest, RunsThatMayFailStayWithTheirThread) {
  Training training;
  warm(training);
  eval();
  const uint64_t before = runs_behind();
  const auto step = [&](int label) {
    const Array labels(std::vector<int32_t>(10, label), {10});
    const auto loss_of = [&](const Net& m) { return mse(m(training.x), cast(onehot(labels, 2), Float32)); };
    update(training.state, training.net, gradient(loss_of, training.net));
  };
  for (int i = 0; i < 100; ++i) step(i % 2);
  const Values weights = training.weights();
  EXPECT_THROW(step(2), Error);
  EXPECT_EQ(training.weights(), weights);
  EXPECT_EQ(runs_behind(), before);
}

}  // namespace
}  // namespace rosin
