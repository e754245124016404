// Optimizer{.shard = true}: each rank keeps a share of the state, and the weights are those of a training without.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

#include "../error_testing.hpp"
#include "ranks.hpp"

namespace rosin::distributed {
namespace {

class ShardedSteps : public Ranks {
 protected:
  /// Over shared memory one sum is made in one order whoever wants it; MPI may choose another for one rank.
  void expect_equal(const Array& got, const Array& wanted, const std::string& name) const {
    const std::vector<double> a = values(got), c = values(wanted);
    ASSERT_EQ(a.size(), c.size()) << name;
    for (size_t i = 0; i < a.size(); ++i) {
      if (n == 1 || b.name() == "local") ASSERT_EQ(a[i], c[i]) << name;
      else ASSERT_NEAR(a[i], c[i], 1e-12) << name;
    }
  }
  void expect_same_model(const Chain& got, const Chain& wanted) const {
    const std::vector<NamedArray> one = rosin::state(got), other = rosin::state(wanted);
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) expect_equal(one[i].value, other[i].value, one[i].name);
  }
  /// The gradient of the loss of this rank's own batch.
  Chain own_gradient(const Chain& model, int step) const {
    Rng rng(static_cast<uint64_t>(100 * step + rank));
    const Array x = randn(rng, {6, 4}, Float64), y = randn(rng, {3, 4}, Float64);
    return gradient([&](const Chain& m) { return mean(square(m(x) - y)); }, model);
  }
  template <class R> void compare_with_whole(const R& rule) { compare_with_whole(rule, fresh()); }
  template <class R> void compare_with_whole(const R& rule, const Chain& start) {
    SCOPED_TRACE(to_string(setup(rule, start)).substr(0, 200));
    Chain model = start, plain = start;
    State state = setup(Optimizer(b, rule, {.shard = true}), model), whole = setup(Optimizer(b, rule), plain);
    for (int step = 0; step < 8; ++step) {
      update(state, model, own_gradient(model, step));
      update(whole, plain, own_gradient(plain, step));
    }
    expect_same_model(model, plain);
    for (const NamedArray& x : rosin::state(model)) EXPECT_TRUE(same_everywhere(b, x.value)) << x.name;
  }
  static Chain fresh() {
    seed(5);
    return f64(Chain(Dense(6, 7, tanh), Dense(7, 9, tanh), Dense(9, 3)));
  }
  /// Two of its parameters have more than 64 KiB, and with two or four ranks both are divided.
  static Chain wide() {
    seed(6);
    return f64(Chain(Dense(6, 4096, tanh), Dense(4096, 3)));
  }
  std::string shared_file(const char* name) const {
    const auto process = synchronize(b, static_cast<int64_t>(getpid()));
    return (std::filesystem::temp_directory_path() / (std::to_string(process) + name)).string();
  }
};

int64_t elements(const State& state) {
  int64_t count = 0;
  for (const Array& x : fleaves(state)) count += x.is_nothing() ? 0 : x.count();
  return count;
}

TEST_F(ShardedSteps, GiveTheWeightsOfATrainingWithout) {
  compare_with_whole(Adam{.eta = 1e-2});
  compare_with_whole(Momentum{.eta = 1e-2});
  compare_with_whole(OptimiserChain(ClipNorm{0.1}, AdamW{.eta = 1e-2, .lambda = 1e-3}));
  compare_with_whole(MixedPrecision(Float64, Adam{.eta = 1e-2}));
  compare_with_whole(AccumGrad{2});
}

TEST_F(ShardedSteps, KeepAShareOfTheState) {
  seed(2);
  const Chain model(Dense(8, 8, {}, {.bias = false}), Dense(8, 8, {}, {.bias = false}),
                    Dense(8, 8, {}, {.bias = false}), Dense(8, 8, {}, {.bias = false}));
  const State whole = setup(Optimizer(b, Momentum{}), model),
              own = setup(Optimizer(b, Momentum{}, {.shard = true}), model);
  EXPECT_EQ(elements(whole), 4 * 64);
  EXPECT_EQ(elements(own), 4 * 64 / n);
  const std::string text = to_string(own);
  for (int other = 0; other < n; ++other) {
    const std::string said =
        "Leaf(Optimizer(" + kind_of(b) + ", Momentum(0.01, 0.9), shard = true), on rank " + std::to_string(other) + ")";
    EXPECT_EQ(text.find(said) != std::string::npos, other != rank) << text;
  }
  EXPECT_EQ(to_string(synchronize(b, own)), text);
  check_synchronized(b, own);
}

TEST_F(ShardedSteps, DivideLargeParametersOfRulesThatMoveEachElementByItself) {
  compare_with_whole(Descent{}, wide());
  compare_with_whole(Momentum{}, wide());
  compare_with_whole(Nesterov{}, wide());
  compare_with_whole(RMSProp{.centred = true}, wide());
  compare_with_whole(Rprop{}, wide());
  compare_with_whole(Adam{}, wide());
  compare_with_whole(AdamW{.lambda = 1e-2}, wide());
  compare_with_whole(RAdam{}, wide());
  compare_with_whole(AdaMax{}, wide());
  compare_with_whole(OAdam{}, wide());
  compare_with_whole(NAdam{}, wide());
  compare_with_whole(AMSGrad{}, wide());
  compare_with_whole(AdaGrad{}, wide());
  compare_with_whole(AdaDelta{}, wide());
  compare_with_whole(AdaBelief{}, wide());
  compare_with_whole(Lion{}, wide());
  compare_with_whole(ScheduleFreeAdamW{.warmup = 3}, wide());
  compare_with_whole(Lookahead(2, 0.5, Adam{}), wide());
  compare_with_whole(Scheduler(StepRate{0.1, 0.5, 2}, Momentum{}), wide());
  compare_with_whole(OptimiserChain(ClipGrad{1e-3}, WeightDecay{}, SignDecay{}, AccumGrad{2}, Adam{}), wide());
  compare_with_whole(MixedPrecision(Float64, Adam{}), wide());
  compare_with_whole(OptimiserChain(ClipNorm{0.1}, Adam{}), wide());
  compare_with_whole(Muon{}, wide());
}

/// Says that each element moves by itself, and keeps something else.
struct ThreeNumbers {
  static constexpr bool elementwise = true;
  struct State {
    Array numbers;
  };
  State init(const Array&) const { return {zeros({3})}; }
  Array apply(State&, const Array&, const Array& g) const { return g; }
};

TEST_F(ShardedSteps, ARuleThatKeepsOtherShapesIsNotDivided) {
  if (n == 1) return;  // nothing is
  const std::string part = std::to_string(24'576 / n);
  EXPECT_EQ(error_of([&] { setup(Optimizer(b, ThreeNumbers{}, {.shard = true}), wide()); }, ErrorKind::argument),
            "setup: a rule that says it is elementwise keeps arrays of the parameter's shape, and numbers; for " +
                part + " elements of layers.0.weight it keeps (3); leave `elementwise` out of the rule");
}

TEST_F(ShardedSteps, KeepPartsOfLargeParameters) {
  const Chain model = wide();
  const State own = setup(Optimizer(b, Momentum{}, {.shard = true}), model);
  const std::string text = to_string(own), part = ", elements " + std::to_string(24'576 / n * rank) + " to " +
                                                  std::to_string(24'576 / n * (rank + 1) - 1) + " of 24576)";
  EXPECT_EQ(text.find(part) != std::string::npos, n > 1) << text;
  const double average = 1.0 / n * static_cast<double>(elements(setup(Optimizer(b, Momentum{}), model)));
  EXPECT_LE(static_cast<double>(elements(own)), average + 4096) << "what is small stays whole";
  const State of_whole = setup(Optimizer(b, OptimiserChain(ClipNorm{1}, Momentum{}), {.shard = true}), model);
  EXPECT_EQ(to_string(of_whole).find("elements"), std::string::npos) << "the norm is that of a parameter";
}

/// A NaN in the part of one rank; the copy of the model that somebody holds stays, too.
TEST_F(ShardedSteps, WhatIsRefusedOfAPartIsUndoneEverywhere) {
  Chain model = wide();
  State state = setup(Optimizer(b, Adam{}, {.shard = true}), model);
  update(state, model, own_gradient(model, 0));
  const Chain before = copy_of(model), held = model;
  const State kept = state;
  const auto with_nan = [](const ModelPath& path, const Array& x) {
    if (path.text() != "layers[0].weight") return x;
    return set(x, {Slice(3999), Slice(5)}, std::numeric_limits<double>::quiet_NaN());
  };
  const Chain wrong = fmap(with_nan, own_gradient(model, 1));
  const std::string text = error_of([&] { update(state, model, wrong, {.check = true}); }, ErrorKind::numeric);
  EXPECT_NE(text.find("a gradient must be finite; it is NaN at layers[0].weight"), std::string::npos) << text;
  expect_same_model(model, before);
  EXPECT_EQ(to_string(gathered(state)), to_string(gathered(kept)));
  update(state, model, own_gradient(model, 1));
  expect_same_model(held, before);
}

struct Waves {
  Array weight;
};

/// Rules take complex numbers as two numbers each.
TEST_F(ShardedSteps, OfComplexNumbersAreDividedToo) {
  const int64_t count = 9000;
  const auto complex_randn = [&](uint64_t number) {
    Rng rng(number);
    return complex(randn(rng, {3, count / 3}), randn(rng, {3, count / 3}));
  };
  Waves model{complex_randn(1)}, plain = model;
  State state = setup(Optimizer(b, Adam{}, {.shard = true}), model), whole = setup(Optimizer(b, Adam{}), plain);
  EXPECT_EQ(to_string(state).find(" of 9000)") != std::string::npos, n > 1) << to_string(state);
  for (int step = 0; step < 3; ++step) {
    const Waves g{complex_randn(static_cast<uint64_t>(10 * step + rank + 2))};
    update(state, model, g);
    update(whole, plain, g);
  }
  EXPECT_LE(maximum(abs(model.weight - plain.weight)).item(), n == 1 || b.name() == "local" ? 0 : 1e-6);
  State all = gathered(state);
  const std::vector<Array> got = fleaves(all), wanted = fleaves(whole);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].shape(), wanted[i].shape());
  EXPECT_EQ(to_string(sharded(all)), to_string(state));
}

TEST_F(ShardedSteps, OfHalfParametersHaveMastersInParts) {
  const auto half = [](const Chain& m) { return fmap([](const Array& x) { return cast(x, BFloat16); }, m); };
  seed(7);
  const Chain start = half(Chain(Dense(6, 8000, tanh), Dense(8000, 3)));
  Chain model = start, plain = start;
  State state = setup(Optimizer(b, MixedPrecision(Adam{}), {.shard = true}), model),
        whole = setup(Optimizer(b, MixedPrecision(Adam{})), plain);
  for (int step = 0; step < 3; ++step) {
    const auto g = [&](const Chain& m) { return half(own_gradient(f64(m), step)); };
    update(state, model, g(model));
    update(whole, plain, g(plain));
  }
  EXPECT_EQ(to_string(state).find("elements") != std::string::npos, n > 1) << to_string(state);
  const std::vector<Array> got = fleaves(model), wanted = fleaves(plain);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), BFloat16);
    EXPECT_LE(maximum(abs(got[i] - wanted[i])).item(), n == 1 || b.name() == "local" ? 0 : 1e-2);
  }
}

TEST_F(ShardedSteps, TheAverageOfARanksPartIsRefused) {
  Chain model = wide();
  State state = setup(Optimizer(b, ScheduleFreeAdamW{}, {.shard = true}), model);
  update(state, model, own_gradient(model, 0));
  EXPECT_EQ(error_of([&] { schedule_free_average(state, model); }, ErrorKind::argument),
            "schedule_free_average: the state must be that of all parameters; this one has a rank's part; give it "
            "distributed::gathered(state), which every rank calls");
  const Chain average = schedule_free_average(gathered(state), model);
  EXPECT_TRUE(all(is_finite(fleaves(average).front())).item<bool>());
}

TEST_F(ShardedSteps, AStepThatFailsOnOneRankIsUndoneOnAll) {
  Chain model = fresh(), plain = fresh();
  const OptimiserChain rule(ClipNorm{1}, Adam{.eta = 1e-2});
  State state = setup(Optimizer(b, rule, {.shard = true}), model), other = state;
  update(state, model, own_gradient(model, 0));
  update(other, plain, own_gradient(plain, 0));
  Chain wrong = own_gradient(model, 1);
  const auto with_nan = [](const ModelPath& path, const Array& x) {
    return path.text() == "layers[1].weight" ? x * std::numeric_limits<double>::quiet_NaN() : x;
  };
  wrong = fmap(with_nan, wrong);
  const std::string text = error_of([&] { update(state, model, wrong); }, ErrorKind::numeric);
  EXPECT_NE(text.find("it is NaN at layers[1].weight"), std::string::npos) << text;
  EXPECT_EQ(text.ends_with(" (on rank 0)"), n > 1) << text;
  expect_same_model(model, plain);
  EXPECT_EQ(to_string(gathered(state)), to_string(gathered(other)));
  update(state, model, own_gradient(model, 1));
  update(other, plain, own_gradient(plain, 1));
  expect_same_model(model, plain);
}

TEST_F(ShardedSteps, AGatheredStateIsThatOfATrainingWithoutAndGoesOn) {
  for (const Chain& start : {fresh(), wide()}) {
    Chain model = start, plain = start;
    State state = setup(Optimizer(b, Adam{.eta = 1e-2}, {.shard = true}), model),
          whole = setup(Optimizer(b, Adam{.eta = 1e-2}), plain);
    for (int step = 0; step < 3; ++step) {
      update(state, model, own_gradient(model, step));
      update(whole, plain, own_gradient(plain, step));
    }
    State all = gathered(state);
    const std::vector<NamedArray> got = rosin::state(all), wanted = rosin::state(whole);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].value.shape(), wanted[i].value.shape()) << got[i].name;
      expect_equal(got[i].value, wanted[i].value, got[i].name);
    }
    EXPECT_EQ(to_string(sharded(all)), to_string(state));

    Chain third = model;
    update(all, third, own_gradient(third, 3));  // as if it were not shared out
    State again = sharded(gathered(state));
    update(again, model, own_gradient(model, 3));
    expect_same_model(model, third);
  }
  EXPECT_EQ(error_of([&] { sharded(setup(Adam{}, fresh())); }, ErrorKind::argument),
            "sharded: the state must be one that ranks share out; its rule does not; make it with "
            "setup(Optimizer(backend, rule, {.shard = true}), model)");
}

TEST_F(ShardedSteps, GoOnFromACheckpointOfTheGatheredState) {
  const std::string file = shared_file("-sharded.safetensors");
  Chain model = fresh();
  State state = setup(Optimizer(b, Adam{.eta = 1e-2}, {.shard = true}), model);
  update(state, model, own_gradient(model, 0));
  if (State whole = gathered(state); rank == 0) Checkpoint(file, {{"model", model}, {"state", whole}}).save();
  barrier(b);

  Chain other = fresh();
  State begun = setup(Optimizer(b, Adam{.eta = 1e-2}, {.shard = true}), other), whole = gathered(begun);
  EXPECT_TRUE(Checkpoint(file, {{"model", other}, {"state", whole}}).resume());
  begun = sharded(whole);
  barrier(b);
  if (rank == 0) std::filesystem::remove(file);
  for (int step = 1; step < 4; ++step) {
    update(state, model, own_gradient(model, step));
    update(begun, other, own_gradient(other, step));
  }
  expect_same_model(other, model);

  Checkpoint part(file, {{"state", state}});
  EXPECT_EQ(error_of([&] { part.save(); }, ErrorKind::argument),
            "checkpoint: a file has the optimiser state of all parameters; this one has a rank's part; save "
            "distributed::gathered(state), and make distributed::sharded(state) of what was loaded");
}

TEST_F(ShardedSteps, AreOfTheOutermostRule) {
  Chain model = fresh();
  const Optimizer shared(b, Descent{}, {.shard = true});
  const auto refused = [](const auto& f) { return error_of(f, ErrorKind::argument).substr(0, 85); };
  const std::string rule = "Optimizer: shard and statistics are options of the outermost rule; it is inside anoth";
  EXPECT_EQ(refused([&] { setup(OptimiserChain(WeightDecay{}, shared), model); }), rule);
  EXPECT_EQ(refused([&] { setup(MixedPrecision(Float64, shared), model); }), rule);
  State state = setup(Lookahead(shared), model);
  EXPECT_EQ(refused([&] { update(state, model, own_gradient(model, 0)); }), rule);
  expect_same_model(model, fresh());
}

TEST_F(ShardedSteps, FrozenAndAdjustedParametersAreAsWithout) {
  Chain model = fresh(), plain = fresh();
  State state = setup(Optimizer(b, Momentum{}, {.shard = true}), model), whole = setup(Optimizer(b, Momentum{}), plain);
  for (State* each : {&state, &whole}) freeze(*each, "layers[1].*"), adjust(*each, 0.05);
  for (int step = 0; step < 4; ++step) {
    if (step == 2) thaw(state), thaw(whole);
    update(state, model, own_gradient(model, step));
    update(whole, plain, own_gradient(plain, step));
  }
  expect_same_model(model, plain);
}

/// What only one rank sees, each its own: an element that is not finite, a loss.
TEST_F(ShardedSteps, WhatOneRankRefusesAllRefuse) {
  Chain model = fresh();
  State state = setup(Optimizer(b, Momentum{}, {.shard = true}), model);
  const Chain infinite = fmap([](const Array& x) { return x / 0.0; }, own_gradient(model, 0));
  const std::string text = error_of([&] { update(state, model, infinite, {.check = true}); }, ErrorKind::numeric);
  EXPECT_TRUE(text.starts_with("update: a gradient must be finite; it is ")) << text;
  const double factor = rank == n - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
  const auto loss = [&](const Chain& m, const Array& x) { return mean(square(m(x))) * factor; };
  const std::vector<Array> data = {ones({6, 4}, Float64)};
  const std::string said = error_of([&] { train(loss, model, data, state); }, ErrorKind::numeric);
  EXPECT_TRUE(said.starts_with("train: loss is NaN on item 1; stopped before the update")) << said;
  expect_same_model(model, fresh());
}

/// An overflow that one rank alone owns the gradient of.
TEST_F(ShardedSteps, ALossScaleSkipsTheStepOnAllRanks) {
  Chain model = fresh(), plain = fresh();
  const LossScaleOptions how{.init = 1024, .interval = 2};
  State state = setup(LossScale(Optimizer(b, Adam{.eta = 1e-2}, {.shard = true}), how), model),
        whole = setup(LossScale(Optimizer(b, Adam{.eta = 1e-2}), how), plain);
  for (int step = 0; step < 6; ++step) {
    const Chain g = own_gradient(model, step);
    const auto scaled = [&](const ModelPath& path, const Array& x) {
      const bool overflows = step == 3 && path.text() == "layers[1].weight";
      return x * loss_scale(state).scale * (overflows ? std::numeric_limits<double>::infinity() : 1.0);
    };
    const Chain before = model, given = fmap(scaled, g);
    update(state, model, given);
    update(whole, plain, given);
    if (step == 3) expect_same_model(model, before);
    EXPECT_EQ(loss_scale(state).scale, loss_scale(whole).scale) << step;
    EXPECT_EQ(loss_scale(state).skipped, step < 3 ? 0 : 1) << step;
  }
  expect_same_model(model, plain);
  EXPECT_EQ(loss_scale(sharded(gathered(state))).scale, loss_scale(state).scale);
}

TEST_F(ShardedSteps, OfADeviceAreAsThoseOfTheCpu) {
  const Device device = get_device("reference", 0).with(keep);
  Chain model = wide() | device, plain = wide();
  State state = setup(Optimizer(b, Adam{.eta = 1e-2}, {.shard = true}), model),
        copied = synchronize(b, setup(Optimizer(b, Adam{.eta = 1e-2}), model)),
        whole = setup(Optimizer(b, Adam{.eta = 1e-2}), plain);
  Chain other = model;
  for (int step = 0; step < 3; ++step) {
    const Chain g = own_gradient(plain, step);
    update(state, model, g | device);
    update(copied, other, g | device);
    update(whole, plain, g);
  }
  EXPECT_EQ(device_of(model), device);
  EXPECT_EQ(to_string(state).find("elements") != std::string::npos, n > 1);
  EXPECT_EQ(to_string(sharded(gathered(state)) | device), to_string(state));
  for (const Chain& each : {model | cpu, other | cpu}) {
    const std::vector<NamedArray> got = rosin::state(each), wanted = rosin::state(plain);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(maximum(abs(got[i].value - wanted[i].value)).item(), 1e-12) << got[i].name;
    }
  }
}

/// Statistics of the ranks' own batches, and their average.
TEST_F(Ranks, RunningStatisticsAreOwnOrAveraged) {
  Rng rng(static_cast<uint64_t>(40 + rank));
  const Array x = randn(rng, {3, 8}, Float64) + static_cast<double>(rank);
  for (const Statistics statistics : {Statistics::own, Statistics::averaged}) {
    Chain model = f64(Chain(BatchNorm(3)));
    State state = setup(Optimizer(b, Descent{}, {.statistics = statistics}), model);
    update(state, model, gradient([&](const Chain& m) { return sum(square(m(x))); }, model));
    const Array got = getkeypath(model, "layers.0.mean");
    const Array own = 0.1 * reshape(mean(x, 1), {3}),
                wanted = statistics == Statistics::own ? own : allreduce(b, own, avg);
    EXPECT_TRUE(isapprox(got, wanted)) << to_string(got) << to_string(wanted);
    EXPECT_EQ(same_everywhere(b, got), n == 1 || statistics == Statistics::averaged);
  }
}

}  // namespace
}  // namespace rosin::distributed
