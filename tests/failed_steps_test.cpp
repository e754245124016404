// A step that fails on a device leaves model and state as they were, whatever the rule reads first, whatever else comes
// out of the step, and where a parameter has one element. Read first: device_checks_test.cpp, Context::heirs.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rules.hpp>
#include <rosin/train.hpp>

#include "error_testing.hpp"
#include "null_counts.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

using Values = std::vector<double>;

struct Scorer {
  Array w, gain;
  Array operator()(const Array& x) const { return matmul(w, x) * gain; }
};

/// With `decay`, the gradient reads parameters where these are updated.
template <class M, class R> struct Training {
  Training(M start, const R& rule, double by, const Device& device)
      : where(device), model(start | device), state(setup(rule, model)), decay(by), x(given_x() | device) {
    good = Array(std::vector<int64_t>{0, 4, 2, 2, 1, 3, 0}, {7}) | device;
    bad = Array(std::vector<int64_t>{0, 4, 2, 9, 1, 3, 0}, {7}) | device;
  }
  static Array given_x() { return sin(reshape(cast(arange(21), Float32), {3, 7})); }

  void step(const Array& labels) {
    const auto loss_of = [&](const M& m) {
      Array loss = labelcrossentropy(m(x), labels);
      for (const Array& parameter : fleaves(m)) {
        if (decay != 0 && is_float(parameter.dtype())) loss = loss + decay * sum(square(parameter));
      }
      return loss;
    };
    const auto [loss, g] = withgradient(loss_of, model);
    update(state, model, g);
  }
  void fail() {
    const auto bad_step = [&] {
      step(bad);
      synchronize(where);
    };
    EXPECT_EQ(error_of(bad_step, ErrorKind::argument).substr(0, 47), "labels: a label must be in [0, 5); got 9; label");
  }
  Values parameters() const {
    Values all;
    for (const Array& parameter : fleaves(model)) {
      const Values values = parameter.to_vector<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Device where;
  M model;
  State state;
  double decay;
  Array x, good, bad;
};

/// Four good steps and a bad one among them come to what the CPU makes of the good ones.
template <class M, class R> void expect_unharmed(const std::string& what, const M& start, const R& rule, double decay) {
  SCOPED_TRACE(what + ", decay " + std::to_string(decay));
  Training there(start, rule, decay, some_device()), here(start, rule, decay, Device());
  for (int i = 0; i < 4; ++i) {
    if (i == 2) {
      const Values before = there.parameters();
      there.fail();
      EXPECT_EQ(there.parameters(), before);
    }
    there.step(there.good);
    here.step(here.good);
  }
  const Values got = there.parameters(), want = here.parameters();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-4) << "element " << i;
}

Scorer scorer() { return {cos(reshape(cast(arange(15), Float32), {5, 3})), ones({1})}; }

template <class R> void expect_unharmed(const std::string& what, const R& rule) {
  for (const double decay : {0.0, 0.01}) expect_unharmed(what, scorer(), rule, decay);
}

TEST(FailedSteps, OfEveryRule) {
  expect_unharmed("Descent", Descent{.eta = 0.1});
  expect_unharmed("Momentum", Momentum{.eta = 0.1});
  expect_unharmed("Nesterov", Nesterov{.eta = 0.1});
  expect_unharmed("RMSProp", RMSProp{});
  expect_unharmed("Rprop", Rprop{});
  expect_unharmed("Adam", Adam{.eta = 0.01});
  expect_unharmed("AdamW", AdamW{.eta = 0.01});
  expect_unharmed("RAdam", RAdam{});
  expect_unharmed("AdaMax", AdaMax{});
  expect_unharmed("OAdam", OAdam{});
  expect_unharmed("NAdam", NAdam{});
  expect_unharmed("AMSGrad", AMSGrad{});
  expect_unharmed("AdaGrad", AdaGrad{});
  expect_unharmed("AdaDelta", AdaDelta{});
  expect_unharmed("AdaBelief", AdaBelief{});
  expect_unharmed("Lion", Lion{});
}

TEST(FailedSteps, OfChains) {
  expect_unharmed("decay, momentum", OptimiserChain(WeightDecay{0.01}, Momentum{.eta = 0.1}));
  expect_unharmed("decay, Nesterov", OptimiserChain(WeightDecay{0.01}, Nesterov{.eta = 0.1}));
  expect_unharmed("signs, Adam", OptimiserChain(SignDecay{0.01}, Adam{.eta = 0.01}));
  expect_unharmed("clipped", OptimiserChain(ClipNorm{0.5}, WeightDecay{0.01}, AdamW{.eta = 0.01}));
}

TEST(FailedSteps, OfLayersWithStatistics) {
  for (const double decay : {0.0, 0.01}) {
    seed(5);
    const Chain net(Dense(3, 4), BatchNorm(4), Dense(4, 1), Dense(1, 5));
    expect_unharmed("BatchNorm", net, OptimiserChain(WeightDecay{0.01}, Momentum{.eta = 0.05}), decay);
  }
}

template <class M, class R> void expect_no_wait(const std::string& what, const M& start, const R& rule) {
  for (const double decay : {0.0, 0.01}) {
    SCOPED_TRACE(what + ", decay " + std::to_string(decay));
    Training training(start, rule, decay, get_device("null", 0));
    for (int i = 0; i < 6; ++i) training.step(training.good);
    const uint64_t syncs = null_count("stream_sync"), waits = null_count("event_sync"), sent = null_count("copy_in");
    for (int i = 0; i < 20; ++i) training.step(training.good);
    EXPECT_EQ(null_count("copy_in"), sent);  // the numbers of the classes are there
    EXPECT_EQ(null_count("stream_sync"), syncs);
    EXPECT_EQ(null_count("event_sync"), waits);
  }
}

TEST(FailedSteps, NobodyWaitsToLearnWhetherAStepHasFailed) {
  if (!functional("null")) GTEST_SKIP() << why_not("null");
  expect_no_wait("Nesterov", scorer(), OptimiserChain(WeightDecay{0.01}, Nesterov{.eta = 0.1}));
  expect_no_wait("AMSGrad", scorer(), OptimiserChain(SignDecay{0.01}, AMSGrad{}));
  const Chain net(Dense(3, 4), BatchNorm(4), Dense(4, 1), LayerNorm(1), Dense(1, 5));
  expect_no_wait("layers", net, OptimiserChain(WeightDecay{0.01}, Adam{}));
}

}  // namespace
}  // namespace rosin
