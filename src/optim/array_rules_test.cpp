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

struct One {
  Array x;
};

One at(double value) { return {full({2}, value, Float64)}; }

TEST(Lookahead, GoesBackButForAShareOfTheWay) {
  One model = at(1);
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
  One model = at(1);
  State state = setup(Lookahead{OptimiserChain(ClipGlobalNorm{1}, Descent{1})}, model);
  update(state, model, at(3));
  EXPECT_NEAR(model.x.item(0), 1 - std::sqrt(0.5), 1e-12);
  EXPECT_EQ(error_of([&] { setup(Lookahead{0, 0.5, Descent{}}, model); }), "Lookahead: k must be at least 1");
  EXPECT_EQ(error_of([&] { setup(Muon{.iterations = 0}, model); }),
            "Muon: it needs an iteration at least; got 0; the default is 5");
}

TEST(ArrayRules, KeepLittleAndTrainEveryTypeOfFloats) {
  for (DType type : {Float32, Float64, Float16, BFloat16}) {
    One model{cast(randn({6, 4}), type)};
    State state = setup(Adafactor{}, model);
    update(state, model, One{cast(randn({6, 4}), type)});
    EXPECT_EQ(model.x.dtype(), type);
    int64_t kept = 0;
    for (const auto& leaf : fleaves(state)) kept += leaf.count();
    EXPECT_EQ(kept, 6 + 4 + 1);
    for (State other : {setup(Lamb{}, model), setup(Muon{}, model)}) {
      update(other, model, One{cast(randn({6, 4}), type)});
      EXPECT_EQ(model.x.dtype(), type);
      EXPECT_TRUE(std::isfinite(sum(model.x).item()));
    }
  }
}

TEST(ArrayRules, ANormOfZeroLeavesLambsStepAsItIs) {
  One model = at(0);
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
