// State and update: what changes, what stays, what is refused, what is printed. Values are those of Optimisers.jl's
// tests (O1-O11) and of Flux's documentation.
#include <rosin/optim.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/functor.hpp>
#include <rosin/grad.hpp>
#include <rosin/log.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>
#include <rosin/tied.hpp>

#include "graph/node.hpp"

namespace rosin {
namespace {

struct Affine {
  Array weight;
  Array bias;
  Array (*activation)(const Array&) = leakyrelu;

  Array operator()(const Array& x) const { return activation(matmul(weight, x) + bias); }
};
struct Net {
  Affine hidden, out;
};

Array vec(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Array(values, {count});
}
std::vector<double> values(const Array& x) { return x.to_vector<double>(); }
using Values = std::vector<double>;

Net small_net() { return {{ones({3, 2}), zeros({3})}, {ones({1, 3}), zeros({1})}}; }

template <class F> std::string refusal(F f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "accepted";
}

TEST(State, ReproducesTheDocumentationOfTrain) {
  struct Model {
    Affine dense;
  };
  Model model{{ones({1, 2}, Float64), zeros({1}, Float64)}};
  State state = setup(Momentum{0.1}, model);
  const Array x({0.2, -0.3}, {2}), y({0.4}, {1});
  for (int i = 0; i < 2; ++i) {
    const auto g = gradient([&](const Model& m) { return sum(abs(m.dense(x) - y)) * 100; }, model);
    update(state, model, g);
  }
  EXPECT_NEAR(model.dense.bias.item(), 10.19, 1e-12);
  EXPECT_EQ(to_string(state),
            "(dense = (weight = Leaf(Momentum(0.1, 0.9), Float64[-2.018 3.027]), bias = "
            "Leaf(Momentum(0.1, 0.9), Float64[-10.09]), activation = ()),)");
}

TEST(State, PrintsTheTreeOfTheModel) {
  const State state = setup(Adam{}, small_net());
  EXPECT_EQ(
      to_string(state),
      "(hidden = (weight = Leaf(Adam(0.001, (0.9, 0.999), 1.0e-8), (Float32[0.0 0.0; 0.0 0.0; 0.0 0.0], Float32[0.0 "
      "0.0; 0.0 0.0; 0.0 0.0], (0.9, 0.999))), bias = Leaf(Adam(0.001, (0.9, 0.999), 1.0e-8), (Float32[0.0, 0.0, "
      "0.0], Float32[0.0, 0.0, 0.0], (0.9, 0.999))), activation = ()), out = (weight = Leaf(Adam(0.001, (0.9, "
      "0.999), 1.0e-8), (Float32[0.0 0.0 0.0], Float32[0.0 0.0 0.0], (0.9, 0.999))), bias = Leaf(Adam(0.001, (0.9, "
      "0.999), 1.0e-8), (Float32[0.0], Float32[0.0], (0.9, 0.999))), activation = ()))");
}

TEST(State, PrintsLargeArraysShortened) {
  struct Layers {
    std::vector<Affine> layers;
  };
  State state = setup(Momentum{}, Layers{{{zeros({256, 1}), zeros({256})}}});
  freeze(state);
  EXPECT_EQ(
      to_string(state),
      "(layers = ((weight = Leaf(Momentum(0.01, 0.9), Float32[0.0; 0.0; … ; 0.0; 0.0;;], frozen = true), bias = "
      "Leaf(Momentum(0.01, 0.9), Float32[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0  …  0.0, 0.0, 0.0, 0.0, "
      "0.0, 0.0, 0.0, 0.0, 0.0, 0.0], frozen = true), activation = ()),),)");
}

struct Vectors {
  Array x, y;
};

TEST(State, UpdatedLeavesStateAndModelAsTheyAre) {
  const Vectors model{vec({1, 2}), vec({3})};
  const State state = setup(Momentum{.eta = 0.1}, model);
  const std::string before = to_string(state);
  auto next = updated(state, model, Vectors{vec({1, 1}), Array()});
  EXPECT_EQ(values(next.model.x), (Values{0.9, 1.9}));
  EXPECT_TRUE(same(next.model.y, model.y));
  EXPECT_EQ(values(model.x), (Values{1, 2}));
  EXPECT_EQ(to_string(state), before);
  EXPECT_NE(to_string(next.state), before);
}

TEST(State, ThirteenStepsInPlaceEqualThirteenSteps) {
  Vectors in_place{vec({1, 2}), vec({3})}, outside = in_place;
  State state = setup(OptimiserChain(WeightDecay{0.1}, Adam{.eta = 0.1}), in_place), other = state;
  for (int i = 0; i < 13; ++i) {
    const Vectors g{vec({0.1 * i, 1}), vec({-1})};
    update(state, in_place, g);
    auto next = updated(other, outside, g);
    other = next.state;
    outside = next.model;
  }
  EXPECT_EQ(values(in_place.x), values(outside.x));
  EXPECT_EQ(values(in_place.y), values(outside.y));
  EXPECT_EQ(to_string(state), to_string(other));
}

// (A parameter of one element may be computed beside the rows of a reduction, and gets other memory then.)
TEST(State, OverwritesWhatOnlyTheModelHolds) {
  Net model{{ones({3, 2}), zeros({3})}, {ones({2, 3}), zeros({2})}};
  State state = setup(Adam{.eta = 0.1}, model);
  const Array x({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  const auto step = [&] {
    auto [loss, g] = withgradient([&](const Net& m) { return sum(square(m.out(m.hidden(x)))); }, model);
    update(state, model, g);
  };
  step();
  std::vector<const void*> before, after;
  const auto pointers = [&](std::vector<const void*>& list) {
    for (const Array& a : fleaves(model)) list.push_back(a.node()->data());
    for (const Array& a : fleaves(state)) list.push_back(a.node()->buffer ? a.node()->data() : nullptr);
    std::sort(list.begin(), list.end());  // equal sizes may change places
  };
  pointers(before);
  for (int i = 0; i < 5; ++i) step();
  pointers(after);
  ASSERT_EQ(before.size(), 4u + 4u * 3u);
  EXPECT_EQ(before, after);
}

TEST(State, SnapshotsOfTheModelKeepTheirValues) {
  Vectors model{vec({1, 2}), vec({3})};
  State state = setup(Descent{1}, model);
  const Vectors best = model;
  const State first = state;
  update(state, model, Vectors{vec({1, 1}), vec({1})});
  update(state, model, Vectors{vec({1, 1}), vec({1})});
  EXPECT_EQ(values(best.x), (Values{1, 2}));
  EXPECT_EQ(values(best.y), (Values{3}));
  EXPECT_EQ(values(model.x), (Values{-1, 0}));
}

TEST(State, ComputesLossAndStepAsOneProgram) {
  Net model = small_net();
  State state = setup(Adam{}, model);
  const Array x({1.f, 2.f}, {2});
  Array kept_loss;
  for (int i = 0; i < 3; ++i) {
    auto [loss, g] = withgradient([&](const Net& m) { return sum(square(m.out(m.hidden(x)))); }, model);
    const bool before = loss.node()->ready();
    update(state, model, g);
    EXPECT_FALSE(before);
    EXPECT_TRUE(loss.node()->ready());
    kept_loss = loss;
  }
  EXPECT_GT(kept_loss.item(), 0);
}

TEST(State, FreezesAndThawsByPath) {
  Vectors model{vec({1, 2}), vec({3, 4})};
  State state = setup(Descent{0.1}, model);
  freeze(state, "y");
  update(state, model, Vectors{vec({1, 10}), vec({100, 1000})});
  EXPECT_EQ(values(model.x), (Values{0.9, 1.0}));
  EXPECT_EQ(values(model.y), (Values{3, 4}));
  adjust(state, 0.2);
  thaw(state, "y");
  update(state, model, Vectors{vec({1, 10}), vec({100, 1000})});
  EXPECT_NEAR(model.x.item(0), 0.7, 1e-12);
  EXPECT_NEAR(model.x.item(1), -1, 1e-12);
  EXPECT_EQ(values(model.y), (Values{-17, -196}));
}

TEST(State, FrozenLeavesKeepTheirState) {
  Vectors model{vec({1}), vec({2})};
  State state = setup(Adam{}, model);
  freeze(state, "x");
  const std::string before = to_string(state);
  update(state, model, Vectors{vec({1}), Array()});
  EXPECT_EQ(to_string(state), before);
}

TEST(State, AdjustsByPathAndKeepsWhatRulesKeep) {
  Net model = small_net();
  State state = setup(OptimiserChain(ClipGrad{5}, Momentum{0.1}), model);
  adjust(state, {.eta = 1e-4}, "out.*");
  adjust(state, {.rho = 0.5, .delta = 2});
  adjust(state, {.eta = 0.25}, "hidden.bias");
  const std::string text = to_string(state);
  const auto times = [&](const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(times("OptimiserChain(ClipGrad(2.0), Momentum(0.0001, 0.5))"), 2);
  EXPECT_EQ(times("OptimiserChain(ClipGrad(2.0), Momentum(0.25, 0.5))"), 1);
  EXPECT_EQ(times("OptimiserChain(ClipGrad(2.0), Momentum(0.1, 0.5))"), 1);
  EXPECT_EQ(to_string(adjusted(state, 0.5)).find("Momentum(0.1,"), std::string::npos);
  EXPECT_EQ(to_string(state), text);
}

TEST(State, UnknownPathsNameTheNearest) {
  State state = setup(Descent{}, small_net());
  EXPECT_EQ(refusal([&] { freeze(state, "hiden.*"); }, ErrorKind::argument),
            "freeze: no parameter of the model matches \"hiden.*\"; the nearest path is hidden");
  EXPECT_EQ(refusal([&] { adjust(state, 0.1, "out.weigth"); }, ErrorKind::argument),
            "adjust: no parameter of the model matches \"out.weigth\"; the nearest path is out.weight");
  EXPECT_EQ(refusal([&] { thaw(state, "[0].zzzzzzzzz"); }, ErrorKind::argument),
            "thaw: no parameter of the model matches \"[0].zzzzzzzzz\"; its first one is hidden.weight");
  EXPECT_EQ(refusal([&] { adjust(state, -1.0); }, ErrorKind::argument),
            "adjust: Descent: the learning rate cannot be negative, got -1.0");
  EXPECT_NE(refusal([&] { adjust(state, Adjustment{}); }, ErrorKind::argument).find("something must change"),
            std::string::npos);
  EXPECT_EQ(to_string(state), to_string(setup(Descent{}, small_net())));
}

struct Twice {
  Array first;
  Vectors rest;  // y is tied to first
};

TEST(State, TiedPlacesAreOneParameterWithTheSumOfGradients) {
  const Array w = tied(vec({1, 2}));
  Twice model{w, {vec({5, 6}), w}};
  State state = setup(Momentum{0.1}, model);
  update(state, model, Twice{vec({3, 3}), {vec({10, 10}), vec({7, 7})}});
  EXPECT_TRUE(same(model.first, model.rest.y));
  EXPECT_TRUE(is_tied(model.first));
  EXPECT_EQ(values(model.first), (Values{0, 1}));
  EXPECT_EQ(values(model.rest.x), (Values{4, 5}));
  update(state, model, Twice{Array(), {Array(), vec({10, 10})}});
  EXPECT_TRUE(same(model.first, model.rest.y));
  EXPECT_NEAR(model.first.item(0), -1.9, 1e-12);  // m = 0.9*1 + 1
  EXPECT_EQ(fleaves(state).size(), 2u);
}

TEST(State, GradientsOfTiedPlacesCountOnce) {
  const Array w = tied(vec({1, 2}));
  Twice model{w, {vec({5, 6}), w}};
  State state = setup(Descent{1}, model);
  const auto g = gradient([](const Twice& m) { return sum(m.first * 3 + m.rest.y * 4 + m.rest.x); }, model);
  update(state, model, g);
  EXPECT_EQ(values(model.first), (Values{-6, -5}));
  EXPECT_TRUE(same(model.first, model.rest.y));
}

TEST(State, TiesOutliveAStepThatIsUndone) {
  const Array w = tied(vec({1, 2}));
  Twice model{w, {vec({5, 6}), w}};
  State state = setup(OptimiserChain(Momentum{1}, ClipNorm{100}), model);
  update(state, model, Twice{vec({1, 1}), {vec({1, 1}), Array()}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(update(state, model, Twice{vec({1, 1}), {vec({1, nan}), Array()}}), Error);
  EXPECT_EQ(values(model.first), (Values{0, 1}));
  EXPECT_EQ(values(model.rest.x), (Values{4, 5}));
  EXPECT_TRUE(same(model.first, model.rest.y));
  EXPECT_TRUE(is_tied(model.first));
  update(state, model, Twice{vec({0, 0}), {vec({0, 0}), Array()}});
  EXPECT_NEAR(model.first.item(0), -0.9, 1e-12);
  EXPECT_NEAR(model.first.item(1), 0.1, 1e-12);
  EXPECT_TRUE(same(model.first, model.rest.y));
}

TEST(State, ObjectsBehindSharedPointersAreUpdatedOnce) {
  struct Shared {
    std::shared_ptr<Vectors> a, b;
  };
  const auto pair = std::make_shared<Vectors>(Vectors{vec({1}), vec({2})});
  Shared model{pair, pair};
  State state = setup(Descent{1}, model);
  const auto g = gradient([](const Shared& m) { return sum(m.a->x * 2 + m.b->x * 3 + m.b->y); }, model);
  update(state, model, g);
  EXPECT_EQ(values(pair->x), (Values{-4}));
  EXPECT_EQ(values(pair->y), (Values{1}));
}

struct TwoThirds {
  Array a, b, c;
  static constexpr auto rosin_fields = fields<&TwoThirds::a, &TwoThirds::c>{};
  static constexpr auto rosin_trainable = fields<&TwoThirds::a>{};
};

TEST(State, OnlyTrainedFieldsChange) {
  TwoThirds model{vec({1}), vec({2}), vec({3})};
  State state = setup(Descent{1}, model);
  update(state, model, TwoThirds{vec({1}), vec({1}), vec({1})});
  EXPECT_EQ(values(model.a), (Values{0}));
  EXPECT_EQ(values(model.b), (Values{2}));
  EXPECT_EQ(values(model.c), (Values{3}));
  EXPECT_EQ(to_string(state), "(a = Leaf(Descent(1.0), nothing), c = ())");
}

TEST(State, KeepsTheTypeOfParameters) {
  for (DType type : {Float16, BFloat16, Float32, Float64}) {
    Vectors model{cast(vec({1, 2}), type), cast(vec({3}), type)};
    State state = setup(Adam{0.1}, model);
    update(state, model, Vectors{vec({1, 1}), cast(vec({1}), type)});
    EXPECT_EQ(model.x.dtype(), type);
    EXPECT_EQ(model.y.dtype(), type);
    EXPECT_LT(model.x.item(0), 1);
  }
}

TEST(State, RefusesWhatBelongsToAnotherModel) {
  Net model = small_net();
  Vectors other{vec({1}), vec({2})};
  State state = setup(Descent{}, model);
  EXPECT_EQ(refusal([&] { update(state, other, other); }, ErrorKind::argument),
            "update: the model must have the fields of the model that setup was given; it has x where the state has "
            "hidden.weight; call state = setup(rule, model) for this model");
  EXPECT_EQ(refusal([&] { update(state, model, other); }, ErrorKind::argument),
            "update: the gradient must have the fields of the model that setup was given; it has x where the state has "
            "hidden.weight; call state = setup(rule, model) for this model");
  EXPECT_EQ(refusal([&] { update(state, model, model.hidden); }, ErrorKind::argument).substr(0, 26),
            "update: the gradient must ");
  State empty;
  EXPECT_EQ(refusal([&] { update(empty, model, model); }, ErrorKind::argument),
            "update: the state is empty; make it with state = setup(rule, model)");
}

TEST(State, RefusesGradientsOfAnotherShape) {
  Vectors model{vec({1, 2}), vec({3})};
  State state = setup(Descent{}, model);
  EXPECT_EQ(
      refusal(
          [&] {
            update(state, model, Vectors{vec({1, 2}), vec({1, 2})});
          },
          ErrorKind::shape),
      "update: a gradient must have the shape of its parameter; that of y is (2), the parameter (1); give update what "
      "gradient(f, model) returns");
  EXPECT_EQ(values(model.x), (Values{1, 2}));
  model.x = vec({1, 2, 3});
  EXPECT_EQ(
      refusal(
          [&] {
            update(state, model, Vectors{vec({1, 2}), vec({1})});
          },
          ErrorKind::argument),
      "update: x is (3) Float64 and was (2) Float64 when setup was called; call state = setup(rule, model) again");
}

TEST(State, WarnsWhenThereIsNothingToTrain) {
  forget_said();
  std::string heard;
  set_log_sink([](const LogMessage& message, void* data) { *static_cast<std::string*>(data) += message.text; }, &heard);
  setup(Adam{}, Vectors{Array({1, 2}, {2}), Array()});
  set_log_sink(nullptr);
  EXPECT_EQ(heard, "setup: found no trainable parameters in this model");
}

TEST(State, IsWalkedByPathAndLoadedBack) {
  Net model = small_net();
  State state = setup(Adam{}, model);
  const Array x({1.f, 2.f}, {2});
  const auto step = [&](State& s, Net& m) {
    const auto g = gradient([&](const Net& n) { return sum(square(n.out(n.hidden(x)))); }, m);
    update(s, m, g);
  };
  step(state, model);
  step(state, model);
  const std::vector<NamedArray> saved = rosin::state(state);
  ASSERT_EQ(saved.size(), 12u);
  EXPECT_EQ(saved[0].name, "hidden.weight.m");
  EXPECT_EQ(saved[5].name, "hidden.bias.t");
  EXPECT_EQ(saved[5].value.dtype(), Int64);
  EXPECT_EQ(saved[5].value.item<int64_t>(), 2);
  State resumed = setup(Adam{}, model);
  loadmodel(resumed, saved);
  Net other = clone(model);
  step(state, model);
  step(resumed, other);
  EXPECT_EQ(values(model.hidden.weight), values(other.hidden.weight));
  EXPECT_EQ(to_string(state), to_string(resumed));
}

TEST(State, HoldsAnArrayAlone) {
  Array x = vec({1, 2});
  State state = setup(Descent{1}, x);
  update(state, x, vec({1, 1}));
  EXPECT_EQ(values(x), (Values{0, 1}));
  EXPECT_EQ(to_string(state), "Leaf(Descent(1.0), nothing)");
}

TEST(State, AChangedRateIsFoundInThePlanCache) {
  Vectors model{vec({1, 2}), vec({3})};
  State state = setup(Adam{}, model);
  const auto step = [&] {
    const auto g = gradient([](const Vectors& m) { return sum(m.x * m.x) + sum(m.y * m.y); }, model);
    update(state, model, g);
  };
  for (int i = 0; i < 3; ++i) step();
  const int64_t structures = stats().structures;
  for (int i = 0; i < 5; ++i) {
    adjust(state, 0.1 / (i + 1));
    step();
  }
  EXPECT_EQ(stats().structures, structures);
}

TEST(State, ModelAndGradientInEachOthersPlaceAreRefused) {
  Net model = small_net();
  State state = setup(Adam{}, model);
  const std::string before = to_string(state);
  const auto call = [&] { return gradient([](const Net& m) { return sum(m.out(m.hidden(ones({2, 1})))); }, model); };
  const std::string text =
      "update: the model comes before its gradient; the gradient holds the parameter hidden.weight; write "
      "update(state, model, gradient)";
  for (int step = 0; step < 2; ++step) {
    Net grad = call();
    EXPECT_EQ(refusal([&] { update(state, grad, model); }, ErrorKind::argument), text);
    if (step == 0) {
      EXPECT_EQ(to_string(state), before);
    }
    update(state, model, grad);  // in their order they are taken
  }
  Net copy = model, grad = call();
  State other = state;
  EXPECT_EQ(refusal([&] { update(other, grad, copy); }, ErrorKind::argument), text);
}

TEST(State, AParameterMayBeItsOwnGradient) {
  Twice model{vec({1, 2}), {vec({5, 6}), vec({7, 8})}};
  State state = setup(Descent{0.5}, model);
  update(state, model, Twice(model));  // as of half the squared norm
  EXPECT_EQ(values(model.first), (Values{0.5, 1}));
  const Twice old = model;
  model.first = vec({1, 1});
  update(state, model, Twice{vec({2, 2}), {Array(), Array()}});
  EXPECT_EQ(values(model.first), (Values{0, 0}));
  EXPECT_EQ(values(old.first), (Values{0.5, 1}));
}

TEST(State, AGradientThatIsNotFiniteIsRefusedWhereThatIsAsked) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  Vectors model{vec({1, 2}), vec({3})};
  State state = setup(Adam{}, model);
  update(state, model, Vectors{vec({1, 1}), vec({1})}, {.check = true});
  const Values x = values(model.x), y = values(model.y);
  const std::string before = to_string(state);
  for (const double wrong : {nan, infinite, -infinite}) {
    const Vectors g{vec({1, 1}), vec({wrong})};
    EXPECT_EQ(refusal([&] { update(state, model, g, {.check = true}); }, ErrorKind::numeric),
              std::string("update: a gradient must be finite; it is ") + (std::isnan(wrong) ? "NaN" : "Inf") +
                  " at y; lower the learning rate or look for such values in the data");
    EXPECT_EQ(values(model.x), x);
    EXPECT_EQ(values(model.y), y);
    EXPECT_EQ(to_string(state), before);
    EXPECT_THROW(updated(state, model, g, {.check = true}), Error);
  }
  freeze(state, "y");
  update(state, model, Vectors{vec({1, 1}), vec({nan})}, {.check = true});
  EXPECT_NE(values(model.x), x);
  EXPECT_EQ(values(model.y), y);
}

TEST(State, RatesThatAreNaNAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Vectors model{vec({1}), vec({2})};
  EXPECT_EQ(refusal([&] { setup(Descent{nan}, model); }, ErrorKind::argument),
            "setup: Descent: the learning rate cannot be NaN; give a number, such as 0.001");
  EXPECT_NE(refusal([&] { setup(OptimiserChain(WeightDecay{1e-4}, Adam{nan}), model); }, ErrorKind::argument)
                .find("Adam: the learning rate cannot be NaN"),
            std::string::npos);
  State state = setup(Adam{}, model);
  EXPECT_EQ(refusal([&] { adjust(state, nan); }, ErrorKind::argument),
            "adjust: the learning rate cannot be NaN; give a number, such as 0.001");
  EXPECT_EQ(refusal([&] { adjusted(state, nan); }, ErrorKind::argument),
            "adjust: the learning rate cannot be NaN; give a number, such as 0.001");
  EXPECT_NE(refusal([&] { adjust(state, -1); }, ErrorKind::argument).find("cannot be negative, got -1"),
            std::string::npos);
}

TEST(State, PatternsMayHaveAnyNumberOfStars) {
  Net model = small_net();
  State state = setup(Descent{}, model);
  const auto frozen = [&](const std::string& pattern) {
    thaw(state);
    freeze(state, pattern);
    Net next = small_net();
    State copy = state;
    update(copy, next, Net{{ones({3, 2}), ones({3})}, {ones({1, 3}), ones({1})}});
    std::string text;
    for (const auto& [name, value] : named_trainables(next)) {
      if (value.to_vector() == getkeypath(small_net(), name).to_vector()) text += name + " ";
    }
    return text;
  };
  const std::string stars(1000000, '*');
  EXPECT_EQ(frozen(stars + "t"), "hidden.weight out.weight out.bias ");  // "out" is around both
  EXPECT_EQ(frozen(stars + "bias"), "hidden.bias out.bias ");
  EXPECT_EQ(frozen("h" + stars + "w" + stars), "hidden.weight ");
  EXPECT_EQ(frozen("*d*n*.*i*t*"), "hidden.weight ");
  EXPECT_EQ(frozen("*en.bias"), "hidden.bias ");
  EXPECT_EQ(frozen("hid*den*"), "hidden.weight hidden.bias ");
  EXPECT_EQ(frozen("hidden.bi*as"), "hidden.bias ");
  EXPECT_NE(refusal([&] { freeze(state, "hidden.bias*s"); }, ErrorKind::argument).find("no parameter"),
            std::string::npos);
  std::string letters;
  for (int i = 0; i < 100000; ++i) letters += "*e";
  EXPECT_NE(refusal([&] { freeze(state, letters + "x"); }, ErrorKind::argument).find("no parameter"),
            std::string::npos);
}

}  // namespace
}  // namespace rosin
