// Whole training steps: how many launches they take, what they compile, whose memory they overwrite.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "graph/node.hpp"

namespace rosin {
namespace {

struct Network {
  Array w, b, v, c;
  Array operator()(const Array& x) const { return matmul(v, relu(matmul(w, x) + b)) + c; }
};

Array wave(const Shape& shape) { return reshape(sin(cast(arange(shape.count()), Float32)), shape); }

Network network() {
  Network made{wave({20, 12}) * 0.3, zeros({20}), wave({10, 20}) * 0.3, zeros({10})};
  eval();
  return made;
}

const void* memory_of(const Array& x) { return x.node()->data(); }

/// One step on `batch` observations; returns the loss.
template <class State> Array step(State& state, Network& model, int64_t batch) {
  const Array x = wave({12, batch});
  eval(x);
  const auto [loss, g] = withgradient([&](const Network& m) { return -mean(sum(logsoftmax(m(x)), 0)); }, model);
  update(state, model, g);
  return loss;
}

TEST(EngineSteps, TheUpdateOfOneParameterIsOneKernel) {
  struct One {
    Array w;
  };
  One model{ones({50})};
  auto state = setup(Adam{}, model);
  const One g{wave({50})};
  eval();
  update(state, model, g);
  const Stats before = stats();
  update(state, model, g);
  EXPECT_EQ(stats().kernels - before.kernels, 1);
  EXPECT_EQ(stats().evaluations - before.evaluations, 1);
}

TEST(EngineSteps, AStepOfTwoLayersIsOneEvaluationOfFewKernels) {
  Network model = network();
  auto state = setup(Adam{}, model);
  step(state, model, 32);
  eval();
  const Stats before = stats();
  const Array loss = step(state, model, 32);
  const Stats after = stats();
  EXPECT_EQ(after.evaluations - before.evaluations, 2);  // the data, and the step
  EXPECT_EQ(after.calls - before.calls, 5);              // two products forward, three back
  EXPECT_LE(after.kernels - before.kernels, 14);
  EXPECT_TRUE(loss.node()->ready());
}

TEST(EngineSteps, ANewBatchSizeOrLearningRateCompilesNothing) {
  Network model = network();
  auto state = setup(Adam{.eta = 1e-3}, model);
  for (int i = 0; i < 2; ++i) step(state, model, 32);
  const Stats before = stats();
  for (int64_t batch : {2, 10, 12, 20, 33, 64}) step(state, model, batch);
  EXPECT_EQ(stats().structures, before.structures);
  const Stats steady = stats();
  for (double eta : {1e-2, 0.0, 0.5}) {
    adjust(state, {.eta = eta});
    step(state, model, 32);
  }
  EXPECT_EQ(stats().structures, steady.structures);
  EXPECT_EQ(stats().layouts, steady.layouts);
}

TEST(EngineSteps, ParametersAreOverwrittenInPlaceUnlessSomebodyHoldsThem) {
  Network model = network();
  auto state = setup(Momentum{}, model);
  step(state, model, 8);
  const void *w = memory_of(model.w), *v = memory_of(model.v), *b = memory_of(model.b);
  step(state, model, 8);
  EXPECT_EQ(memory_of(model.w), w);
  EXPECT_EQ(memory_of(model.v), v);
  EXPECT_EQ(memory_of(model.b), b);
  const Array snapshot = model.w;               // a copy of the handle
  const Array alias = reshape(model.v, {200});  // the same memory, pending
  const std::vector<float> before = snapshot.to_vector();
  const std::vector<float> alias_before = (alias * 1).to_vector();
  step(state, model, 8);
  EXPECT_NE(memory_of(model.w), w);
  EXPECT_NE(memory_of(model.v), v);
  EXPECT_EQ(memory_of(model.b), b);
  EXPECT_EQ(snapshot.to_vector(), before);
  EXPECT_EQ(alias.to_vector(), alias_before);
  EXPECT_NE(model.w.to_vector(), before);
}

TEST(EngineSteps, TheModelThatTwoVariablesHoldIsNotChangedThroughOne) {
  Network model = network();
  const Network best = model;
  auto state = setup(Descent{.eta = 0.5}, model);
  const std::vector<float> before = best.w.to_vector();
  for (int i = 0; i < 5; ++i) step(state, model, 8);
  EXPECT_EQ(best.w.to_vector(), before);
  Network again = best;
  auto other = setup(Descent{.eta = 0.5}, again);
  for (int i = 0; i < 5; ++i) step(other, again, 8);
  EXPECT_EQ(again.w.to_vector(), model.w.to_vector());
  EXPECT_EQ(best.w.to_vector(), before);
}

TEST(EngineSteps, WhatTheUserHoldsOfAStepKeepsItsValue) {
  Network model = network();
  auto state = setup(Descent{.eta = 0.1}, model);
  const Array x = wave({12, 8});
  std::vector<Array> held;
  std::vector<std::vector<float>> values;
  for (int i = 0; i < 6; ++i) {
    Array hidden;
    const auto [loss, g] = withgradient(
        [&](const Network& m) {
          hidden = relu(matmul(m.w, x) + m.b);
          return mean(matmul(m.v, hidden) * 2);
        },
        model);
    update(state, model, g);
    for (const Array& kept : {hidden, loss, g.w, model.w}) {
      held.push_back(kept);
      values.push_back(kept.to_vector());
    }
  }
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i].to_vector(), values[i]) << i;
}

TEST(EngineSteps, AnImageInChannelsFirstMeetsRowsInLogicalOrder) {
  const Array x = reshape(cast(arange(48), Float32), {3, 4, 2, 2}),
              image = reshape(cast(arange(16), Float32), {1, 4, 2, 2}),
              w = reshape(cast(arange(4), Float32), {1, 1, 2, 2});
  eval();
  const auto run = [&](bool alone) {
    const Array rows = sum(x * 1, 0);
    if (alone) eval();
    const Array y = conv(image, w);
    if (alone) eval();
    return (rows + y).to_vector();
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace rosin
