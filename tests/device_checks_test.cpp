// Checks of indices on a device: no step of training waits for them, what they find is thrown once at a later boundary,
// and model and state are as before the step that failed, whatever has been given to the device since.
// Read first: test_device.hpp, run/index_flags.hpp.
#include <gtest/gtest.h>

#include <limits>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>
#include <rosin/train.hpp>

#include "error_testing.hpp"
#include "null_counts.hpp"
#include "run_itself.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

struct Table {
  Array w;
};

using Values = std::vector<double>;

/// A table in training, whose steps pick columns of it.
struct Picking {
  explicit Picking(const Device& device)
      : where(device), model(Table{reshape(cast(arange(12), Float32), {3, 4})} | device),
        state(setup(Adam{.eta = 0.1}, model)) {
    good = columns(1, 3);
    bad = columns(1, 7);
  }

  Array columns(int first, int second) const { return Array({first, second}, {2}) | where; }
  Array step(const Array& at) {
    const auto [loss, g] = withgradient([&](const Table& t) { return sum(square(gather(t.w, at, 1))); }, model);
    update(state, model, g);
    return loss;
  }
  Values weights() const { return model.w.to_vector<double>(); }

  Device where;
  Table model;
  State state;
  Array good, bad;
};

Values trained_here(int steps) {
  Picking here{Device()};
  for (int i = 0; i < steps; ++i) here.step(here.good);
  return here.weights();
}

void expect_near(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "element " << i;
}

const char* const bad_index =
    "gather: an index must lie in its dim of 4 elements; got 7; indices count from 0, negative ones from the end";

/// Steps on top of one that fails: those before the error are as if they had not been taken. How many came after it.
int steps_after_the_error(Picking& there, int steps) {
  int after = 0;
  bool thrown = false;
  there.step(there.bad);
  for (int i = 0; i < steps; ++i) {
    try {
      there.step(there.good);
      after += thrown;
    } catch (const Error& error) {
      EXPECT_FALSE(thrown) << "thrown twice";
      EXPECT_STREQ(error.what(), bad_index);
      thrown = true;
    }
  }
  if (!thrown) {
    EXPECT_EQ(error_of([&] { synchronize(there.where); }, ErrorKind::argument), bad_index);
  }
  return after;
}

TEST(DeviceChecks, StepsOnTopOfOneThatFailedChangeNothing) {
  Picking there(some_device());
  there.step(there.good);
  const int after = steps_after_the_error(there, 12);
  expect_near(there.weights(), trained_here(1 + after));
  EXPECT_LT(after, 12);
}

TEST(DISABLED_Inside, StepsFarAhead) {
  Picking there(some_device());
  const Array witness = ones({3}) | there.where;
  there.step(there.good);
  const Array lost = there.step(there.bad);  // its first launch is held until something is copied out
  std::vector<Array> losses;
  for (int i = 0; i < 6; ++i) losses.push_back(there.step(there.good));
  int thrown = 0;
  const auto count = [&](const auto& f) {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), bad_index);
      ++thrown;
    }
  };
  count([&] { witness.to_vector(); });
  count([&] { synchronize(there.where); });
  EXPECT_EQ(thrown, 1);
  for (const Array& loss : losses) EXPECT_THROW(loss.item(), Error);
  EXPECT_THROW(lost.item(), Error);
  expect_near(there.weights(), trained_here(1));
  there.step(there.good);
  expect_near(there.weights(), trained_here(2));
}

TEST(DeviceChecks, TheHostMayBeFarAheadOfTheStepThatFails) {
  const int64_t before = stats().launches;
  Picking other(get_device("reference", 0));
  other.step(other.good);
  const std::string first = std::to_string(stats().launches - before);
  expect_success(run_itself("StepsFarAhead", "ROSIN_TEST_DEVICE=reference:0 ROSIN_REFERENCE=hold=" + first));
}

TEST(DeviceChecks, WhatAStepThatFailedMadeIsRefusedAtEachRead) {
  Picking there(some_device());
  const Array good = there.step(there.columns(0, 2));
  const Array lost = there.step(there.bad);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of([&] { lost.item(); }, ErrorKind::argument), bad_index);
  EXPECT_NE(error_of([&] { (lost + 1).item(); }, ErrorKind::argument).find(bad_index), std::string::npos);
  Picking here{Device()};
  EXPECT_EQ(good.item(), here.step(here.columns(0, 2)).item());
  expect_near(there.weights(), here.weights());
}

struct TwoTables {
  std::vector<Embedding> tables{Embedding(4, 3), Embedding(4, 3)};
  Dense out{3, 1};
  Array operator()(const Array& x) const { return sum(out(tables[1](x))) + sum(tables[0](x * 0)); }
};

/// The errors of steps of training on indices of which one is wrong, and of a chain on them: text, then path.
std::vector<std::string> errors_of_tables(const Device& device) {
  seed(2);
  TwoTables model = TwoTables{} | device;
  State state = setup(Adam{.eta = 0.1}, model);
  const Array wrong = Array({1, 7}, {2}) | device;
  std::vector<std::string> said;
  const auto keep = [&](const auto& f) {
    try {
      f();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      said.push_back(error.what());
      said.push_back(error.path());
    }
  };
  const auto step = [&] {
    const auto g = gradient([&](const TwoTables& m) { return m(wrong); }, model);
    update(state, model, g);
    synchronize(device);
  };
  for (int i = 0; i < 4; ++i) keep(step);
  keep([&] { Chain(model.tables[0], relu)(wrong).to_vector(); });
  return said;
}

TEST(DeviceChecks, AnErrorNamesTheLayerThatRecordedIt) {
  const std::vector<std::string> there = errors_of_tables(some_device());
  ASSERT_EQ(there.size(), 10u);
  const std::string text =
      "Embedding: an index must lie in its dim of 4 elements; got 7; indices count from 0, negative ones from the end";
  for (size_t i = 0; i < 8; i += 2) {
    EXPECT_EQ(there[i], "tables[1]: " + text);
    EXPECT_EQ(there[i + 1], "tables[1]");
  }
  EXPECT_EQ(there[8], "layers[0]: " + text);
  const std::vector<std::string> here = errors_of_tables(Device());
  ASSERT_EQ(here.size(), there.size());  // (which array it came up for, the CPU adds)
  for (size_t i = 0; i < here.size(); ++i) EXPECT_EQ(here[i].substr(0, here[i].find("; this came up")), there[i]);
}

TEST(DeviceChecks, ASnapshotDoesNotHinderThatTheModelStays) {
  Picking there(some_device());
  there.step(there.good);
  const Table snapshot = there.model;
  EXPECT_THROW(
      {
        there.step(there.bad);
        synchronize(there.where);
      },
      Error);
  expect_near(there.weights(), trained_here(1));
  there.step(there.good);
  expect_near(snapshot.w.to_vector<double>(), trained_here(1));
  expect_near(there.weights(), trained_here(2));
}

TEST(DeviceChecks, AnEvaluationThrowsWhatItFindsItself) {
  const Array x = arange(4) | some_device(), at = Array({0, 7}, {2}) | some_device();
  EXPECT_EQ(error_of([&] { eval(gather(x, at, 0)); }, ErrorKind::argument), bad_index);
  EXPECT_EQ(sum(x + 1).item(), 10);
}

TEST(DeviceChecks, TheMemoryOfAPlanThatFailedIsNotClearedUnderItsNextOwner) {
  set_plan_cache(false);
  const Device device = some_device();
  const Array x = arange(4) | device;
  for (int i = 1; i < 40; ++i) {
    {
      const Array at = Array({0, 7}, {2}) | device;
      EXPECT_THROW(gather(x, at, 0).to_vector(), Error);
    }
    std::vector<Array> next;  // the flags of that plan were as large as one of these
    for (int k = 1; k < 9; ++k) next.push_back(Array(std::vector<int64_t>{i * k}, {1}) | device);
    for (int k = 1; k < 9; ++k) EXPECT_EQ(next[static_cast<size_t>(k) - 1].to_vector<int64_t>()[0], i * k);
  }
  set_plan_cache(true);
}

TEST(DeviceChecks, ALossIsReadWhileLaterStepsAreUnderWay) {
  Picking there(some_device()), here{Device()};
  std::vector<Array> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(there.step(there.columns(i % 4, 3)));
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(losses[static_cast<size_t>(i)].item(), here.step(here.columns(i % 4, 3)).item(), 1e-3) << "step " << i;
  }
}

// ---- Values that must be finite ----

/// Three weights in training, a step for each item, which the loss multiplies.
struct Scaling {
  explicit Scaling(const Device& device)
      : where(device), model(Table{Array({1.0f, 2.0f, 3.0f}, {3}) | device}), state(setup(Adam{.eta = 0.1}, model)) {}

  static Array loss(const Table& t, const Array& x) { return sum(square(t.w * x)); }
  std::vector<Array> items(const std::vector<float>& factors) const {
    std::vector<Array> all;
    for (const float factor : factors) all.push_back(full({3}, factor) | where);
    return all;
  }
  void train_on(const std::vector<float>& factors) { train(loss, model, items(factors), state); }
  /// What the first Error of f says, or of waiting for the device behind it.
  template <class F> std::string refusal(F f) {
    return error_of(
        [&] {
          f();
          synchronize(where);
        },
        ErrorKind::numeric);
  }
  Values weights() const { return model.w.to_vector<double>(); }

  Device where;
  Table model;
  State state;
};

Values scaled_here(const std::vector<float>& factors) {
  Scaling here{Device()};
  here.train_on(factors);
  return here.weights();
}

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

TEST(DeviceChecks, TrainStopsAtALossThatIsNotFiniteAndNamesItsItem) {
  Scaling there(some_device());
  const auto said = [&](const std::vector<float>& factors) { return there.refusal([&] { there.train_on(factors); }); };
  EXPECT_EQ(said({1, 2, nan, 1, 2, 1, 1}), "train: loss is NaN on item 3; stopped before the update");
  expect_near(there.weights(), scaled_here({1, 2}));
  EXPECT_EQ(said({3, infinity}), "train: loss is Inf on item 2; stopped before the update");
  expect_near(there.weights(), scaled_here({1, 2, 3}));
  EXPECT_EQ(said({nan}), "train: loss is NaN on item 1; stopped before the update");
  there.train_on({2, 1});
  expect_near(there.weights(), scaled_here({1, 2, 3, 2, 1}));
}

TEST(DeviceChecks, AGradientThatIsNotFiniteIsToldByItsPath) {
  Scaling there(some_device());
  const auto step = [&](const Table& gradient) { update(there.state, there.model, gradient, {.check = true}); };
  const Table good{ones({3}) | there.where}, bad{Array({1.0f, -infinity, 1.0f}, {3}) | there.where};
  step(good);
  EXPECT_EQ(there.refusal([&] { step(bad); }),
            "update: a gradient must be finite; it is Inf at w; lower the learning rate or look for such values in the "
            "data");
  step(good);
  Scaling here{Device()};
  for (int i = 0; i < 2; ++i) update(here.state, here.model, Table{ones({3})});
  expect_near(there.weights(), here.weights());
}

TEST(DeviceChecks, ANormThatIsNotFiniteIsToldByItsPath) {
  Table model{ones({3}) | some_device()};
  State state = setup(OptimiserChain(ClipNorm{1.0}, Descent{0.1}), model);
  EXPECT_EQ(
      error_of(
          [&] {
            update(state, model, Table{Array({1.0f, nan, 1.0f}, {3}) | some_device()});
            synchronize(some_device());
          },
          ErrorKind::numeric),
      "ClipNorm: the norm of the gradient must be finite; it is NaN at w; lower the learning rate or look for such "
      "values in the data");
  expect_near(model.w.to_vector<double>(), {1, 1, 1});
}

TEST(DeviceChecks, ALossIsToldBeforeTheNormThatItSpoils) {
  const Device device = some_device();
  Table model{ones({3}) | device};
  State state = setup(OptimiserChain(ClipNorm{1.0}, Descent{0.1}), model);
  const std::vector<Array> items = {ones({3}) | device, full({3}, nan) | device, ones({3}) | device};
  EXPECT_EQ(error_of([&] { train(Scaling::loss, model, items, state); }, ErrorKind::numeric),
            "train: loss is NaN on item 2; stopped before the update");
}

// ---- On the null back end, which counts what it is asked for ----

struct Words {
  Embedding table{20, 6};
  Dense out{6, 5};
  Array operator()(const Array& x) const { return out(table(x)); }
};

TEST(DeviceChecks, StepsOfTrainingSynchroniseNothing) {
  if (!functional("null")) GTEST_SKIP() << why_not("null");
  const Device device = get_device("null", 0);
  Words model = Words{} | device;
  State state = setup(Adam{}, model);
  const Array x = Array({1, 19, 4}, {3}) | device, y = Array({0, 4, 2}, {3}) | device;
  Array loss;
  const auto step = [&] {
    const auto [now, g] =
        withgradient([&](const Words& m) { return logitcrossentropy(m(x), cast(onehot(y, 5), Float32)); }, model);
    update(state, model, g);
    loss = now;
  };
  for (int i = 0; i < 10; ++i) step();
  const uint64_t syncs = null_count("stream_sync"), waits = null_count("event_sync"),
                 pinned = null_count("alloc_pinned");
  const uint64_t blocks = null_count("alloc"), copies_in = null_count("copy_in");
  for (int i = 0; i < 200; ++i) step();
  EXPECT_EQ(null_count("stream_sync"), syncs);
  EXPECT_EQ(null_count("event_sync"), waits);
  EXPECT_EQ(null_count("alloc_pinned"), pinned);
  EXPECT_EQ(null_count("alloc"), blocks);
  EXPECT_EQ(null_count("copy_in"), copies_in);
  loss.item();
  EXPECT_EQ(null_count("stream_sync"), syncs);
  EXPECT_EQ(null_count("event_sync"), waits + 1);
}

TEST(DeviceChecks, TrainWaitsForNoStepButItsLast) {
  if (!functional("null")) GTEST_SKIP() << why_not("null");
  Scaling there(get_device("null", 0));
  const std::vector<Array> data = there.items(std::vector<float>(200, 1));
  train(Scaling::loss, there.model, data, there.state);
  synchronize(there.where);
  const uint64_t waits = null_count("event_sync"), syncs = null_count("stream_sync"), blocks = null_count("alloc");
  train(Scaling::loss, there.model, data, there.state);
  EXPECT_EQ(null_count("event_sync"), waits + 1);
  EXPECT_EQ(null_count("stream_sync"), syncs);
  EXPECT_EQ(null_count("alloc"), blocks);
}

}  // namespace
}  // namespace rosin
