// What goes around rules and beside them. The steps of Lamb, Adafactor and Muon: rules_test.cpp, with tests/oracles.
#include <rosin/array_rules.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

struct Single {
  Array x;
};

Single at(double value) { return {full({2}, value, Float64)}; }

// AdamWScheduleFree of the paper's authors (package schedulefree 1.4.1): lr=0.1, betas=(0.9, 0.99), weight_decay=0.01,
// warmup_steps=3.
TEST(ScheduleFree, TakesTheStepsOfItsAuthors) {
  const Array target = Array({0.3f, 0.1f, -0.2f}, {3}), weight = Array({1.0f, 2.0f, 3.0f}, {3});
  Single model{Array({1.0f, -2.0f, 0.5f}, {3})};
  const ScheduleFreeAdamW rule{.eta = 0.1, .beta = {0.9, 0.99}, .lambda = 0.01, .warmup = 3};
  State state = setup(rule, model);
  const double want[6][3] = {{0.9663333296775818, -1.965999960899353, 0.4664999842643738},
                             {0.9116979837417603, -1.9107816219329834, 0.4125993549823761},
                             {0.8375454545021057, -1.8357086181640625, 0.34055376052856445},
                             {0.7806779742240906, -1.7779492139816284, 0.28648999333381653},
                             {0.7272335290908813, -1.7235023975372314, 0.23648962378501892},
                             {0.6755289435386658, -1.670647382736206, 0.18885232508182526}};
  for (const auto& point : want) {
    const auto loss = [&](const Single& m) { return sum(square(m.x - target) * weight) + sum(sin(m.x)); };
    update(state, model, gradient(loss, model));
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(model.x.item(i), point[i], 2e-6);
  }
  const Single average = schedule_free_average(state, model);
  const double mean[] = {0.6923813223838806, -1.6878618001937866, 0.20443303883075714};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(average.x.item(i), mean[i], 2e-6);
  EXPECT_NEAR(model.x.item(0), want[5][0], 2e-6);
  EXPECT_EQ(to_string(rule), "ScheduleFreeAdamW(0.1, (0.9, 0.99), 0.01, 1.0e-8, 3)");
}

TEST(Scheduler, CountsItsOwnSteps) {
  Single model = at(0);
  State state = setup(Scheduler(StepRate{.start = 1, .decay = 0.5, .steps = 2}, Descent{}), model);
  std::vector<double> points;
  for (int step = 0; step < 5; ++step) {
    update(state, model, at(-1));
    points.push_back(model.x.item(0));
  }
  EXPECT_EQ(points, (std::vector<double>{1, 2, 2.5, 3, 3.25}));
}

struct Two {
  Single body, head;
};

TEST(PathRules, PartsOfAModelMoveByOtherRules) {
  Two model{at(1), at(1)};
  State state = setup(Descent{0.5}, model, {{"*", Momentum{0.25, 0.5}}, {"head", Descent{0.1}}});
  EXPECT_EQ(to_string(state).find("Descent(0.5)"), std::string::npos);
  for (int step = 0; step < 2; ++step) update(state, model, Two{at(1), at(1)});
  EXPECT_EQ(model.body.x.item(0), 1 - 0.25 - 0.375);
  EXPECT_NEAR(model.head.x.item(0), 0.8, 1e-15);
  const State copy = state;
  EXPECT_EQ(to_string(copy), to_string(state));
  const auto refused = [&](auto rule, PathRule part) { return error_of([&] { setup(rule, model, {part}); }); };
  EXPECT_EQ(refused(Descent{}, {"heads", Descent{}}),
            "setup: no parameter of the model matches \"heads\"; the nearest path is head");
  EXPECT_EQ(refused(Descent{}, {"head", Descent{-1}}),
            "setup: Descent: the learning rate cannot be negative, got -1.0");
  EXPECT_EQ(
      refused(OptimiserChain(ClipGlobalNorm{1}, Descent{}), {"", Descent{}}),
      "setup: a rule that looks at all gradients together must keep a parameter; all have other rules; leave one of "
      "the patterns out");
}

// A gradient of norm 5 for both is scaled to 1 before either rule sees it.
TEST(PathRules, WhatLooksAtAllGradientsComesFirst) {
  Two model{{full({1}, 0.0, Float64)}, {full({1}, 0.0, Float64)}};
  State state = setup(OptimiserChain(ClipGlobalNorm{1}, Descent{1}), model, {{"body", Descent{0.5}}});
  update(state, model, Two{{full({1}, -3.0, Float64)}, {full({1}, -4.0, Float64)}});
  EXPECT_NEAR(model.body.x.item(0), 0.3, 1e-12);
  EXPECT_NEAR(model.head.x.item(0), 0.8, 1e-12);
}

TEST(Lookahead, GoesBackButForAShareOfTheWay) {
  Single model = at(1);
  State state = setup(Lookahead{2, 0.25, Descent{1}}, model);
  std::vector<double> points;
  for (int step = 0; step < 4; ++step) {
    update(state, model, at(0.5));
    points.push_back(model.x.item(0));
  }
  // fast: 0.5, 0; slow: 1 + (0 - 1)/4; then 0.25, -0.25 from there, and 0.75 + (-0.25 - 0.75)/4
  EXPECT_EQ(points, (std::vector<double>{0.5, 0.75, 0.25, 0.5}));
}

TEST(Lookahead, HoldsChainsThatClipAllGradientsTogether) {
  Single model = at(1);
  State state = setup(Lookahead{OptimiserChain(ClipGlobalNorm{1}, Descent{1})}, model);
  update(state, model, at(3));
  EXPECT_NEAR(model.x.item(0), 1 - std::sqrt(0.5), 1e-12);
  EXPECT_EQ(error_of([&] { setup(Lookahead{0, 0.5, Descent{}}, model); }), "Lookahead: k must be at least 1");
  EXPECT_EQ(error_of([&] { setup(Muon{.iterations = 0}, model); }),
            "Muon: it needs an iteration at least; got 0; the default is 5");
}

TEST(ArrayRules, KeepLittleAndTrainEveryTypeOfFloats) {
  for (DType type : {Float32, Float64, Float16, BFloat16}) {
    Single model{cast(randn({6, 4}), type)};
    State state = setup(Adafactor{}, model);
    update(state, model, Single{cast(randn({6, 4}), type)});
    EXPECT_EQ(model.x.dtype(), type);
    int64_t kept = 0;
    for (const auto& leaf : fleaves(state)) kept += leaf.count();
    EXPECT_EQ(kept, 6 + 4 + 1);
    for (State other : {setup(Lamb{}, model), setup(Muon{}, model)}) {
      update(other, model, Single{cast(randn({6, 4}), type)});
      EXPECT_EQ(model.x.dtype(), type);
      EXPECT_TRUE(std::isfinite(sum(model.x).item()));
    }
  }
}

TEST(ArrayRules, ANormOfZeroLeavesLambsStepAsItIs) {
  Single model = at(0);
  State state = setup(Lamb{.eta = 0.5}, model);
  update(state, model, at(0));
  EXPECT_EQ(model.x.item(0), 0);
  update(state, model, at(1));
  EXPECT_LT(model.x.item(0), 0);
}

TEST(AveragedModel, IsTheMeanOfAllOrTheRunningOne) {
  AveragedModel swa(at(7)), ema(at(7), 0.75);
  for (const double value : {1.0, 2.0, 6.0}) {
    swa.add(at(value));
    ema.add(at(value));
  }
  EXPECT_NEAR(swa.model.x.item(0), 3, 1e-15);
  EXPECT_NEAR(ema.model.x.item(0), (1 * 0.75 + 2 * 0.25) * 0.75 + 6 * 0.25, 1e-15);
  EXPECT_EQ(swa.count, 3);
  AveragedModel wrong(at(1), 1);
  EXPECT_EQ(error_of([&] { wrong.add(at(1)); }), "AveragedModel: decay must be in [0, 1)");
}

TEST(AveragedModel, TakesWholeModelsAfterSteps) {
  seed(3);
  Chain model(Dense(3, 4, relu), Dense(4, 1));
  AveragedModel average(model, 0.9);
  State state = setup(Adam{}, model);
  const Array x = randn({3, 8});
  for (int step = 0; step < 3; ++step) {
    update(state, model, gradient([&](const Chain& m) { return mean(square(m(x))); }, model));
    average.add(model);
  }
  EXPECT_EQ(average.model(x).shape(), (Shape{1, 8}));
  EXPECT_NE(average.model(x).item(0, 0), model(x).item(0, 0));
}

}  // namespace
}  // namespace rosin
