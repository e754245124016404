// Rules against values computed elsewhere: the golden vectors and longer runs of tests/oracles/optim.txt, and what
// Optimisers.jl's own tests state.
#include <rosin/optim.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <rosin/array_rules.hpp>
#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/loss_scale.hpp>
#include <rosin/move.hpp>

#include "../tests/oracle_reader.hpp"
#include "../tests/test_device.hpp"

namespace rosin {
namespace {

struct One {
  Array x;
};

using Case = oracles::OracleCase;
using Make = std::function<State(const Case&, const One&)>;

template <class R> Make plain() {
  return [](const Case&, const One& model) { return setup(R{}, model); };
}

const std::map<std::string, Make>& makers() {
  static const std::map<std::string, Make> all = {
      {"Descent", plain<Descent>()},
      {"Momentum", plain<Momentum>()},
      {"Nesterov", plain<Nesterov>()},
      {"RMSProp",
       [](const Case& c, const One& m) { return setup(RMSProp{.centred = c.number("centred", 0) != 0}, m); }},
      {"Rprop", plain<Rprop>()},
      {"Adam", [](const Case& c, const One& m) { return setup(Adam{.eta = c.number("eta", 0.001)}, m); }},
      {"AdamW",
       [](const Case& c, const One& m) {
         return setup(AdamW{.lambda = c.number("lambda", 0), .couple = c.number("couple", 1) != 0}, m);
       }},
      {"RAdam", plain<RAdam>()},
      {"AdaMax", plain<AdaMax>()},
      {"OAdam", plain<OAdam>()},
      {"NAdam", plain<NAdam>()},
      {"AMSGrad", plain<AMSGrad>()},
      {"AdaBelief", plain<AdaBelief>()},
      {"AdaGrad", plain<AdaGrad>()},
      {"AdaDelta", plain<AdaDelta>()},
      {"Lion", plain<Lion>()},
      {"Lamb", [](const Case& c, const One& m) { return setup(Lamb{.lambda = c.number("lambda", 0)}, m); }},
      {"Adafactor", [](const Case& c, const One& m) { return setup(Adafactor{.lambda = c.number("lambda", 0)}, m); }},
      {"Muon",
       [](const Case& c, const One& m) {
         return setup(Muon{.lambda = c.number("lambda", 0.1), .nesterov = c.number("nesterov", 1) != 0}, m);
       }},
      {"ClipGrad", [](const Case& c, const One& m) { return setup(ClipGrad{c.number("delta", 10)}, m); }},
      {"ClipNorm",
       [](const Case& c, const One& m) {
         return setup(ClipNorm{.omega = c.number("omega", 10), .p = c.number("p", 2)}, m);
       }},
  };
  return all;
}

const std::map<std::string, std::function<State(const One&)>>& chains() {
  static const std::map<std::string, std::function<State(const One&)>> all = {
      {"none", [](const One& m) { return setup(OptimiserChain(), m); }},
      {"WeightDecay(0.1)", [](const One& m) { return setup(OptimiserChain(WeightDecay{0.1}), m); }},
      {"SignDecay(0.1)", [](const One& m) { return setup(OptimiserChain(SignDecay{0.1}), m); }},
      {"ClipGrad(2)", [](const One& m) { return setup(OptimiserChain(ClipGrad{2}), m); }},
      {"Descent(0.1)", [](const One& m) { return setup(OptimiserChain(Descent{0.1}), m); }},
      {"ClipGrad(2),WeightDecay(0.1)",
       [](const One& m) { return setup(OptimiserChain(ClipGrad{2}, WeightDecay{0.1}), m); }},
      {"WeightDecay(0.1),ClipGrad(2)",
       [](const One& m) { return setup(OptimiserChain(OptimiserChain(WeightDecay{0.1}), ClipGrad{2}), m); }},
      {"ClipNorm(1),Adam(0.01)", [](const One& m) { return setup(OptimiserChain(ClipNorm{1}, Adam{.eta = 0.01}), m); }},
      {"AccumGrad(3),Descent(0.01)",
       [](const One& m) { return setup(OptimiserChain(AccumGrad{3}, Descent{0.01}), m); }},
  };
  return all;
}

Array array_of(const oracles::OracleArray& a) {
  const Array exact(a.values, Shape(std::span<const int64_t>(a.shape)));
  return a.dtype == "Float64" ? exact : cast(exact, a.dtype == "Float32" ? Float32 : Float16);
}

State state_of(const Case& c, const One& model) {
  if (c.op == "OptimiserChain") return chains().at(c.attributes.at("rules"))(model);
  return makers().at(c.op)(c, model);
}

void check_steps(const Device& device) {
  const auto cases = oracles::read_oracles(oracles::oracle_path("optim.txt"));
  ASSERT_GT(cases.size(), 60u);
  for (const Case& c : cases) {
    SCOPED_TRACE("optim.txt:" + std::to_string(c.line) + " " + c.op + " " + c.dtype);
    One model = One{array_of(c.inputs[0])} | device;
    State state = state_of(c, model);
    for (size_t step = 0; step < c.outputs.size(); ++step) {
      update(state, model, One{array_of(c.inputs[step + 1])} | device);
      ASSERT_STREQ(to_string(model.x.dtype()), c.dtype.c_str());
      const std::vector<double> got = model.x.to_vector<double>();
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(oracles::matches(c.tolerance, c.dtype, c.outputs[step].values[i], got[i]))
            << "step " << step << ", element " << i << ": got " << got[i] << ", want " << c.outputs[step].values[i];
      }
    }
  }
}

TEST(Rules, GiveTheStepsThatWereComputedElsewhere) { check_steps(cpu_device()); }
TEST(Rules, GiveTheSameStepsOnADevice) { check_steps(some_device()); }

One vector_model(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return {Array(values, {count})};
}

TEST(Rules, AccumGradLetsLaterRulesRestUntilTheMean) {
  struct Both {
    Array x, y;
  };
  Both model{Array({1.0}, {1}), Array({2.0}, {1})};
  State state = setup(OptimiserChain(AccumGrad{2}, WeightDecay{0.01}, Descent{0.1}), model);
  update(state, model, Both{Array({33.0}, {1}), Array({0.0}, {1})});
  EXPECT_EQ(model.x.item(), 1);
  EXPECT_EQ(model.y.item(), 2);
  update(state, model, Both{Array({0.0}, {1}), Array({444.0}, {1})});
  EXPECT_NEAR(model.x.item(), -0.651, 1e-12);
  EXPECT_NEAR(model.y.item(), -20.202, 1e-12);
}

TEST(Rules, ClipNormStopsAtANormThatIsNoNumberAndLeavesTheModel) {
  One model = vector_model({1, 2, 3});
  State state = setup(OptimiserChain(Momentum{.eta = 1}, ClipNorm{10}), model);
  update(state, model, vector_model({1, 0, 0}));
  const State before = state;
  try {
    update(state, model, vector_model({1, std::numeric_limits<double>::quiet_NaN(), 0}));
    FAIL() << "a NaN was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_STREQ(error.what(),
                 "ClipNorm: the norm of the gradient must be finite; it is NaN at x; lower the learning "
                 "rate or look for such values in the data");
  }
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{0, 2, 3}));
  EXPECT_EQ(to_string(state), to_string(before));
  update(state, model, vector_model({0, 0, 0}));
  EXPECT_NEAR(model.x.item(0), -0.9, 1e-12);
}

struct Pair {
  Array x, y;
};

Pair pair_of(std::vector<double> x, std::vector<double> y, DType type = Float64) {
  return {cast(vector_model(std::move(x)).x, type), cast(vector_model(std::move(y)).x, type)};
}

/// The model after a step of descent from zeros is the negative of what the rule has made of the gradient.
template <class R> std::vector<double> made_of(const R& rule, const Pair& gradient, const Device& device) {
  Pair model = Pair{zeros_like(gradient.x), zeros_like(gradient.y)} | device;
  State state = setup(rule, model);
  update(state, model, gradient | device);
  std::vector<double> all = (-model.x).to_vector<double>();
  for (const double y : (-model.y).to_vector<double>()) all.push_back(y);
  return all;
}

TEST(Rules, ClipGlobalNormScalesAllGradientsAlike) {
  const double inf = std::numeric_limits<double>::infinity();
  const Pair gradient = pair_of({3, -4}, {12});  // norms: 13, 1-norm 19, largest 12
  for (const Device& device : {cpu_device(), some_device()}) {
    const DType type = device == cpu_device() ? Float64 : Float32;
    const Pair g = pair_of({3, -4}, {12}, type);
    EXPECT_EQ(made_of(ClipGlobalNorm{6.5}, g, device), (std::vector<double>{1.5, -2, 6}));
    EXPECT_EQ(made_of(OptimiserChain(ClipGlobalNorm{26}, Descent{1}), g, device), (std::vector<double>{3, -4, 12}));
    EXPECT_EQ(made_of(OptimiserChain(ClipGlobalNorm{6, inf}, Descent{2}), g, device), (std::vector<double>{3, -4, 12}));
    EXPECT_EQ(made_of(OptimiserChain(ClipGlobalNorm{9.5, 1}), g, device), (std::vector<double>{1.5, -2, 6}));
  }
  EXPECT_EQ(made_of(ClipGlobalNorm{1}, pair_of({0, 0}, {0}), cpu_device()), (std::vector<double>{0, 0, 0}));
  EXPECT_NEAR(made_of(ClipGlobalNorm{6.5, 3}, gradient, cpu_device())[0], 3 * 6.5 / std::cbrt(27 + 64 + 1728), 1e-12);
}

/// The model (0, 0), (0) after the gradients (6, -8), (24) and (0, 0), (0), whose mean has norm 13.
template <class R> std::vector<double> made_of_two(const R& rule, const Device& device, DType type, double scale = 1) {
  Pair model = pair_of({0, 0}, {0}, type) | device;
  State state = setup(rule, model);
  update(state, model, pair_of({6 * scale, -8 * scale}, {24 * scale}, type) | device);
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{0, 0}));
  update(state, model, pair_of({0, 0}, {0}, type) | device);
  std::vector<double> all = (-model.x).to_vector<double>();
  for (const double y : (-model.y).to_vector<double>()) all.push_back(y);
  return all;
}

TEST(Rules, ClipGlobalNormScalesWhatTheRulesBeforeItGive) {
  const std::vector<double> half{1.5, -2, 6};
  for (const Device& device : {cpu_device(), some_device()}) {
    EXPECT_EQ(made_of_two(OptimiserChain(AccumGrad{2}, ClipGlobalNorm{6.5}, Descent{1}), device, Float32), half);
    EXPECT_EQ(
        made_of_two(OptimiserChain(AccumGrad{2}, OptimiserChain(ClipGlobalNorm{6.5}, Descent{1})), device, Float32),
        half);
    EXPECT_EQ(made_of_two(MixedPrecision(OptimiserChain(AccumGrad{2}, ClipGlobalNorm{6.5})), device, Float16), half);
    EXPECT_EQ(
        made_of_two(LossScale{OptimiserChain(AccumGrad{2}, ClipGlobalNorm{6.5}), {.init = 4}}, device, Float32, 4),
        half);
  }
  Pair model = pair_of({3, -4}, {12});
  State state = setup(OptimiserChain(WeightDecay{1}, ClipGlobalNorm{6.5}), model);
  update(state, model, pair_of({0, 0}, {0}));
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{1.5, -2}));
}

TEST(Rules, WhatWasCollectedStaysWhereTheNormOfAllIsNoNumber) {
  Pair model = pair_of({0, 0}, {0});
  State state = setup(OptimiserChain(AccumGrad{2}, ClipGlobalNorm{6.5}, Momentum{1, 0}), model);
  update(state, model, pair_of({6, -8}, {24}));
  EXPECT_THROW(update(state, model, pair_of({std::nan(""), 0}, {0})), Error);
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{0, 0}));
  update(state, model, pair_of({0, 0}, {0}));
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{-1.5, 2}));
  EXPECT_EQ(model.y.to_vector<double>(), (std::vector<double>{-6}));
}

TEST(Rules, ClipGlobalNormOfHalfTypesDoesNotOverflow) {
  const Pair g = pair_of({300, -400}, {1200}, Float16);
  EXPECT_EQ(made_of(ClipGlobalNorm{650}, g, cpu_device()), (std::vector<double>{150, -200, 600}));
  EXPECT_EQ(made_of(MixedPrecision(OptimiserChain(ClipGlobalNorm{650}, Descent{1})), g, cpu_device()),
            (std::vector<double>{150, -200, 600}));
}

TEST(Rules, ClipGlobalNormLeavesOutWhatIsFrozenAndCountsTiesOnce) {
  Pair model = pair_of({0, 0}, {0});
  State state = setup(ClipGlobalNorm{2.5}, model);
  freeze(state, "y");
  update(state, model, pair_of({3, 4}, {12}));
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{-1.5, -2}));
  const Array same = vector_model({3, 4}).x;
  EXPECT_EQ(global_norm(Pair{same, same}).item(), 5);
  EXPECT_EQ(global_norm(pair_of({3, 4}, {12})).item(), 13);
  EXPECT_EQ(global_norm(pair_of({3, -4}, {12}), 1).item(), 19);
  EXPECT_EQ(global_norm(Pair{}).item(), 0);
}

TEST(Rules, ClipGlobalNormStopsAtANormThatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Device& device : {cpu_device(), some_device()}) {
    Pair model = pair_of({1, 2}, {3}, Float32) | device;
    State state = setup(OptimiserChain(ClipGlobalNorm{1}, Adam{}), model);
    try {
      update(state, model, pair_of({1, 2}, {nan}, Float32) | device);
      eval(model.x);
      model.x.to_vector<double>();
      FAIL() << "a NaN was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::numeric);
      const std::string text = error.what();
      EXPECT_NE(text.find("ClipGlobalNorm: the norm of the gradients must be finite; it is NaN; lower"),
                std::string::npos)
          << text;
    }
    EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{1, 2}));
    EXPECT_EQ(model.y.to_vector<double>(), (std::vector<double>{3}));
  }
  Pair model = pair_of({1}, {3});
  EXPECT_THROW(setup(ClipGlobalNorm{0}, model), Error);
  EXPECT_THROW(setup(OptimiserChain(ClipGlobalNorm{1, -1}, Adam{}), model), Error);
  EXPECT_THROW(global_norm(model, 0), Error);
}

TEST(Rules, ClipNormThatDoesNotThrowPassesNaNOn) {
  One model = vector_model({1, 2});
  State state = setup(ClipNorm{.throws = false}, model);
  update(state, model, vector_model({1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(std::isnan(model.x.item(0)));
}

TEST(Rules, NegativeRatesAreRefused) {
  const One model = vector_model({1});
  const auto text = [](auto&& make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(text([&] { setup(Adam{.eta = -0.1}, model); }),
            "setup: Adam: the learning rate cannot be negative, got -0.1");
  EXPECT_EQ(text([&] { setup(OptimiserChain(ClipGrad{1}, Descent{-2}), model); }),
            "setup: Descent: the learning rate cannot be negative, got -2.0");
  EXPECT_EQ(text([&] { setup(AccumGrad{0}, model); }),
            "setup: AccumGrad must accumulate at least one gradient, got 0; n = 1 passes each on");
}

TEST(Rules, MixedPrecisionKeepsStepsThatTheParameterCannotHold) {
  One half{cast(Array({1.0f, 1.0f}, {2}), Float16)};
  State state = setup(MixedPrecision(Descent{1e-4}), half);
  for (int i = 0; i < 20; ++i) update(state, half, One{cast(Array({1.0f, 0.0f}, {2}), Float16)});
  EXPECT_EQ(half.x.dtype(), Float16);
  // 0.998 is 0.9980468750 in Float16; a step of 1e-4 alone would round back to 1.
  EXPECT_EQ(half.x.item(0), 0.998046875);
  EXPECT_EQ(half.x.item(1), 1);
}

TEST(Rules, PrintAsFluxDoes) {
  EXPECT_EQ(to_string(Adam{}), "Adam(0.001, (0.9, 0.999), 1.0e-8)");
  EXPECT_EQ(to_string(OptimiserChain(ClipNorm{1}, Descent{0.1})),
            "OptimiserChain(ClipNorm(1.0, 2.0, true), Descent(0.1))");
  EXPECT_EQ(to_string(AccumGrad{3}), "AccumGrad(3)");
  EXPECT_EQ(to_string(MixedPrecision(Descent{})), "MixedPrecision(Float32, Descent(0.1))");
}

/// mean((w*x - target*x)^2) falls below 0.01 whatever the rule: the gradient by w of (w - target)^2 / 2 is w - target.
template <class R> void drives_to_target(const R& rule, int steps) {
  const std::vector<double> target = {0.8, -0.3, 0.5, 0.1};
  const Array goal(target, {4});
  One model = vector_model({0, 0, 0, 0});
  State state = setup(rule, model);
  double loss = 1;
  for (int i = 0; i < steps && loss >= 0.01; ++i) {
    const Array difference = model.x - goal;
    update(state, model, One{difference});
    loss = 0;
    for (size_t k = 0; k < 4; ++k) loss += std::pow(model.x.item(static_cast<int>(k)) - target[k], 2) / 4;
  }
  EXPECT_LT(loss, 0.01) << to_string(rule);
}

TEST(Rules, DriveALossDown) {
  constexpr int steps = 20000;
  drives_to_target(Descent{}, steps);
  drives_to_target(Momentum{}, steps);
  drives_to_target(Nesterov{}, steps);
  drives_to_target(RMSProp{}, steps);
  drives_to_target(RMSProp{.centred = true}, steps);
  drives_to_target(Rprop{}, steps);
  drives_to_target(Adam{}, steps);
  drives_to_target(AdamW{}, steps);
  drives_to_target(RAdam{}, steps);
  drives_to_target(AdaMax{}, steps);
  drives_to_target(OAdam{}, steps);
  drives_to_target(NAdam{}, steps);
  drives_to_target(AMSGrad{}, steps);
  drives_to_target(AdaGrad{}, steps);
  drives_to_target(AdaDelta{}, steps);
  drives_to_target(AdaBelief{}, steps);
  drives_to_target(Lion{}, steps);
}

/// By hand from the paper's equations: c = b1*m + (1 - b1)*g, the step is eta*sign(c), then m = b2*m + (1 - b2)*g.
TEST(Rules, LionFollowsThePaper) {
  const Lion rule{.eta = 0.125, .beta = {0.5, 0.75}};
  const Array x({1.0}, {1});
  Lion::State state = rule.init(x);
  const double gradients[] = {2, -0.25, -1, 0}, steps[] = {0.125, 0.125, -0.125, -0.125};
  const double means[] = {0.5, 0.3125, -0.015625, -0.01171875};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(rule.apply(state, x, Array({gradients[i]}, {1})).item(), steps[i]) << "step " << i;
    EXPECT_EQ(state.m.item(), means[i]) << "step " << i;
  }
}

/// As in PyTorch: the step of a complex parameter is that of its two parts.
template <class Rule> void expect_steps_by_parts(const Rule& rule, const char* name) {
  One whole{complex(Array({1.0, -2.0}, {2}), Array({0.5, 3.0}, {2}))}, parts{view_as_real(whole.x)};
  State of_whole = setup(rule, whole), of_parts = setup(rule, parts);
  for (int i = 0; i < 3; ++i) {
    const Array g = complex(Array({0.5, -1.0 + i}, {2}), Array({0.25, 2.0}, {2}));
    update(of_whole, whole, One{g});
    update(of_parts, parts, One{view_as_real(g)});
  }
  EXPECT_EQ(whole.x.dtype(), ComplexF64) << name;
  EXPECT_EQ(view_as_real(whole.x).to_vector<double>(), parts.x.to_vector<double>()) << name;
}

TEST(Rules, StepComplexParametersByTheirParts) {
  expect_steps_by_parts(Descent{}, "Descent");
  expect_steps_by_parts(Momentum{}, "Momentum");
  expect_steps_by_parts(RMSProp{}, "RMSProp");
  expect_steps_by_parts(Rprop{}, "Rprop");
  expect_steps_by_parts(Adam{}, "Adam");
  expect_steps_by_parts(AdaGrad{}, "AdaGrad");
  expect_steps_by_parts(AdaDelta{}, "AdaDelta");
  expect_steps_by_parts(AdaBelief{}, "AdaBelief");
  expect_steps_by_parts(AdaMax{}, "AdaMax");
  expect_steps_by_parts(Lion{}, "Lion");
  expect_steps_by_parts(OptimiserChain(ClipNorm{0.5}, WeightDecay{0.1}, Adam{}), "a chain");
}

/// A rule of the user, with a state of its own.
struct Averaged {
  double eta = 0.5;
  struct State {
    Array sum;
  };
  State init(const Array& x) const { return {x * 0.0}; }
  Array apply(State& state, const Array&, const Array& g) const {
    state.sum = state.sum + g;
    return eta * state.sum;
  }
};

TEST(Rules, OfTheUserWorkAsTheOthersDo) {
  One model = vector_model({1, 2});
  State state = setup(OptimiserChain(Averaged{}, ClipGrad{1}), model);
  update(state, model, vector_model({1, -1}));
  update(state, model, vector_model({3, 0}));
  EXPECT_EQ(model.x.to_vector<double>(), (std::vector<double>{-0.5, 3}));
  adjust(state, 0.0);
  EXPECT_EQ(to_string(state), "(x = Leaf(OptimiserChain(Averaged(0.0), ClipGrad(1.0)), Float64[4.0, -1.0]),)");
}

}  // namespace
}  // namespace rosin
