// Running statistics and generators of a model: they move on with each step, and stay as they are where a step fails.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/train.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

/// w x and noise.
struct Noisy {
  Array w = ones({1});
  mutable Rng rng{7};
  Array operator()(const Array& x) const { return w * x + randn(rng, {1}); }
};

/// The generator of key 7, or another, after so many draws of shape {1}.
Rng after(int draws, Rng rng = Rng(7)) {
  for (int i = 0; i < draws; ++i) randn(rng, {1});
  return rng;
}
float noise_after(int draws) {
  Rng rng = after(draws);
  return randn(rng, {1}).item<float>();
}

const auto loss_of_noise = [](const auto& m) { return sum(m(zeros({1}))); };

TEST(Generators, OfAModelMoveOnWithEachGradientCall) {
  Noisy m;
  State state = setup(Descent{0.0}, m);
  for (int step = 0; step < 3; ++step) {
    const auto [loss, g] = withgradient(loss_of_noise, m);
    update(state, m, g);
    EXPECT_EQ(loss.item<float>(), noise_after(step));
  }
  EXPECT_EQ(m.rng, after(3));
}

TEST(Generators, OfAConstModelStay) {
  const Noisy m;
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(withgradient(loss_of_noise, m).value.item<float>(), noise_after(0));
  }
}

TEST(Generators, StayWhereTheFunctionThrows) {
  Noisy m;
  const auto f = [](const Noisy& k) -> Array {
    k(zeros({1}));
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(gradient(f, m), std::runtime_error);
  EXPECT_EQ(m.rng, Rng(7));
}

TEST(Generators, MoveOnWhereTheFunctionTakesTheModelByValue) {
  Noisy m;
  const auto f = [](Noisy k) { return sum(k(zeros({1}))); };
  for (int call = 0; call < 3; ++call) EXPECT_EQ(withgradient(f, m).value.item<float>(), noise_after(call));
}

TEST(Generators, InChainsVectorsAndNestedCallsMoveOn) {
  Chain chain(Noisy{}, Noisy{});
  gradient(loss_of_noise, chain);
  EXPECT_EQ(chain[1].get_if<Noisy>()->rng, after(1));
  struct Several {
    Array w = ones({1});
    std::vector<Rng> rngs{Rng(1), Rng(2)};
  };
  Several several;
  gradient([](Several k) { return sum(k.w * randn(k.rngs[1], {1})); }, several);
  EXPECT_EQ(several.rngs[0], Rng(1));
  EXPECT_EQ(several.rngs[1], after(1, Rng(2)));
  Noisy m;
  gradient([](const Noisy& k) { return sum(gradient([&](const Noisy& q) { return sum(q(k.w)); }, k).w); }, m);
  EXPECT_EQ(m.rng, Rng(7)) << "the copy that a function gets is const";
  gradient([](Noisy k) { return sum(gradient([](const Noisy& q) { return sum(q(q.w)); }, k).w) + sum(k.w); }, m);
  EXPECT_EQ(m.rng, after(1));
}

TEST(Generators, ThatAreSetAnewInsideAreSetInTheModel) {
  Noisy m;
  gradient(
      [](const Noisy& k) {
        k.rng = Rng(99);
        return sum(k(zeros({1})));
      },
      m);
  EXPECT_EQ(m.rng, after(1, Rng(99)));
}

TEST(Generators, AreSeenByVisitorsAndEditors) {
  class See : public ModelVisitor {
   public:
    void array(const Array&, const ModelPath&) override {}
    void rng(const Rng& x, const ModelPath& path) override { text += path.text() + ":" + std::to_string(x.key()); }
    std::string text;
  };
  class Restore : public ModelEditor {
   public:
    void array(Array&, const ModelPath&) override {}
    void rng(Rng& x, const ModelPath&) override { x = Rng::restored(5, 6); }
  };
  struct Net {
    Noisy noisy;
    Rng own{8};
  } net;
  See see;
  visit(std::as_const(net), static_cast<ModelVisitor&>(see));
  EXPECT_EQ(see.text, "noisy.rng:7own:8");
  Restore restore;
  visit(net, static_cast<ModelEditor&>(restore));
  EXPECT_EQ(net.noisy.rng, Rng::restored(5, 6));
  EXPECT_EQ(net.own, Rng::restored(5, 6));
}

/// With everything that a step moves on.
struct Net {
  Dense first{3, 4};
  BatchNorm norm{4, relu};
  Noisy noisy;
  Dense last{4, 2};
  Array operator()(const Array& x) const { return last(noisy(norm(first(x)))); }
};

/// All that a model is: its arrays and where its generator stands.
std::vector<Values> contents(const Net& m) {
  std::vector<Values> all;
  for (const auto& [name, value] : state(m)) all.push_back(value.to_vector());
  all.push_back({static_cast<float>(m.noisy.rng.key()), static_cast<float>(m.noisy.rng.counter())});
  return all;
}

class UndoneStep : public ::testing::Test {
 protected:
  UndoneStep() {
    seed(1);
    net = Net();
    x = randn({3, 8});
    y = randn({2, 8});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    bad = concat({x, full({3, 8}, nan)}, 1);
    steps = setup(Adam{}, net);
    take(x, y);
    take(x, y);
    before = contents(net);
    const Net& seen = net;
    before_state = to_string(steps);
    EXPECT_NE(seen.norm.mean.value().item(0), 0) << "the statistics have moved";
  }

  void take(const Array& input, const Array& target) {
    const auto g = gradient([&](const Net& q) { return mse(q(input), target); }, net);
    update(steps, net, g);
  }
  /// Fails when its values are read: an index is out of range.
  void take_out_of_range() {
    const auto f = [&](const Net& q) { return mse(gather(q(x), Array({0, 99}, {2})), gather(y, Array({0, 1}, {2}))); };
    const auto [loss, g] = withgradient(f, net);
    update(steps, net, g);
    loss.item();
  }

  Net net;
  State steps;
  Array x, y, bad;
  std::vector<Values> before;
  std::string before_state;
};

TEST_F(UndoneStep, OfTrainLeavesStatisticsAndGenerators) {
  const auto loss = [](const Net& q, const Array& input, const Array& target) { return mse(q(input), target); };
  const std::vector<std::tuple<Array, Array>> data = {{bad, concat({y, y}, 1)}};
  EXPECT_EQ(error_of([&] { train(loss, net, data, steps); }, ErrorKind::numeric),
            "train: loss is NaN on item 1; stopped before the update");
  EXPECT_EQ(contents(net), before);
  EXPECT_EQ(to_string(steps), before_state);
  take(x, y);
  EXPECT_NE(contents(net), before);
}

TEST_F(UndoneStep, ThatCannotBeComputedLeavesThem) {
  EXPECT_THROW(take_out_of_range(), Error);
  EXPECT_EQ(contents(net), before);
  EXPECT_EQ(to_string(steps), before_state);
}

TEST_F(UndoneStep, WithTheGradientOfAnotherModelLeavesThem) {
  const auto g = gradient([&](const Net& q) { return mse(q(x), y); }, net);
  State other = setup(Adam{}, net.first);
  EXPECT_THROW(update(other, net, g), Error);
  EXPECT_EQ(contents(net), before);
}

TEST_F(UndoneStep, OfSeveralGradientCallsLeavesThem) {
  const auto f = [&](const Net& q) { return mse(q(x), y); };
  const auto [loss, first] = withgradient(f, net);
  loss.item();
  const auto second = gradient(f, net);
  const auto nan = fmap([](const Array& g) { return g * std::numeric_limits<float>::quiet_NaN(); }, second);
  EXPECT_THROW(update(steps, net, nan, {.check = true}), Error);
  EXPECT_EQ(contents(net), before);
}

TEST_F(UndoneStep, GoesBackToTheLastStepByHandAtMost) {
  const auto f = [&](const Net& q) { return mse(q(x), y); };
  const auto by_hand = gradient(f, net);
  net.first.weight = net.first.weight - 0.1f * by_hand.first.weight;
  const auto left = contents(net);
  const auto g = gradient(f, net);
  EXPECT_NE(contents(net), left);
  const auto nan = fmap([](const Array& v) { return v * std::numeric_limits<float>::quiet_NaN(); }, g);
  EXPECT_THROW(update(steps, net, nan, {.check = true}), Error);
  EXPECT_EQ(contents(net), left);
}

TEST_F(UndoneStep, OfAConstModelHasNothingToTakeBack) {
  const auto f = [&](const Net& q) { return mse(q(x), y); };
  const Net& seen = net;
  gradient(f, seen);
  EXPECT_EQ(contents(net), before);
}

TEST_F(UndoneStep, ThatWorksKeepsWhatTheCallWrote) {
  Net again = net;
  State same_steps = steps;
  const auto f = [&](const Net& q) { return mse(q(x), y); };
  const auto g = gradient(f, again);
  const auto written = contents(again);
  update(same_steps, again, g);
  const auto after = contents(again);
  EXPECT_EQ(after.back(), written.back());
  EXPECT_EQ(again.norm.mean.value().to_vector(), [&] {
    Net once = net;
    gradient(f, once);
    return once.norm.mean.value().to_vector();
  }());
  EXPECT_THROW(update(same_steps, again, fmap([](const Array& v) { return v / 0.0f; }, g), {.check = true}), Error);
  EXPECT_EQ(contents(again), after) << "a step takes back what came after the last one only";
}

}  // namespace
}  // namespace rosin
