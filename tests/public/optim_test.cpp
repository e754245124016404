// Optimisers as a user sees them: public headers and librosin only.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/reduce.hpp>
#include <rosin/schedule.hpp>
#include <rosin/train.hpp>

using namespace rosin;

namespace {

struct Affine {
  Array weight, bias;
  Array operator()(const Array& x) const { return matmul(weight, x) + bias; }
};
struct Net {
  Affine hidden, out;
  Array operator()(const Array& x) const { return out(tanh(hidden(x))); }
};

Net fresh_net() {
  return {{Array({0.5f, -0.5f, 0.25f, 1.0f, -1.0f, 0.75f}, {6, 1}), zeros({6})},
          {Array({0.2f, -0.1f, 0.3f, 0.1f, -0.2f, 0.1f}, {1, 6}), zeros({1})}};
}

const Array inputs({-1.0f, -0.5f, 0.0f, 0.5f, 1.0f}, {1, 5});
const Array targets({1.0f, 0.25f, 0.0f, 0.25f, 1.0f}, {1, 5});

Array loss_of(const Net& m) { return mean(square(m(inputs) - targets)); }

template <class R> double loss_after(const R& rule, int steps) {
  Net model = fresh_net();
  State state = setup(rule, model);
  for (int i = 0; i < steps; ++i) {
    auto [loss, grad] = withgradient(loss_of, model);
    update(state, model, grad);
  }
  return loss_of(model).item();
}

TEST(Optimisers, AnArrayThatCannotBeComputedStopsOneStepAndChangesNothing) {
  const auto train_two = [](bool with_bad) {
    Net model = fresh_net();
    State state = setup(Adam{.eta = 0.01}, model);
    const auto step = [&] {
      auto [loss, grad] = withgradient(loss_of, model);
      update(state, model, grad);
    };
    const Array bad = gather(inputs, Array({0, with_bad ? 9 : 1}, {2}), 1);
    const std::vector<float> before = model.hidden.weight.to_vector();
    if (with_bad) {
      EXPECT_THROW(step(), Error);
      EXPECT_EQ(model.hidden.weight.to_vector(), before);
    }
    step();
    step();
    return model.hidden.weight.to_vector();
  };
  EXPECT_EQ(train_two(true), train_two(false));
}

TEST(Optimisers, EveryRuleLowersTheLossOfANetwork) {
  const double before = loss_of(fresh_net()).item();
  EXPECT_LT(loss_after(Descent{}, 200), 0.5 * before);
  EXPECT_LT(loss_after(Momentum{}, 200), 0.5 * before);
  EXPECT_LT(loss_after(Nesterov{0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(RMSProp{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(Rprop{}, 200), 0.5 * before);
  EXPECT_LT(loss_after(Adam{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(AdamW{.eta = 0.01, .lambda = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(RAdam{.eta = 0.02}, 400), 0.5 * before);
  EXPECT_LT(loss_after(AdaMax{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(OAdam{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(NAdam{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(AMSGrad{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(AdaGrad{}, 200), 0.5 * before);
  EXPECT_LT(loss_after(AdaDelta{}, 2000), 0.5 * before);
  EXPECT_LT(loss_after(AdaBelief{.eta = 0.01}, 200), 0.5 * before);
  EXPECT_LT(loss_after(Lion{.eta = 0.003}, 400), 0.5 * before);
  EXPECT_LT(
      loss_after(OptimiserChain(ClipNorm{1}, ClipGrad{1}, WeightDecay{1e-4}, SignDecay{1e-5}, Adam{.eta = 0.01}), 200),
      0.5 * before);
  EXPECT_LT(loss_after(OptimiserChain(AccumGrad{2}, Adam{.eta = 0.01}), 400), 0.5 * before);
  EXPECT_LT(loss_after(MixedPrecision(Float64, Adam{.eta = 0.01}), 200), 0.5 * before);
}

TEST(Optimisers, TrainFollowsASchedule) {
  Net model = fresh_net();
  State state = setup(Adam{}, model);
  const auto rate = warmup(5, CosineRate{.start = 0.05, .end = 0.001, .steps = 40});
  const std::vector<std::tuple<Array, Array>> data(5, std::tuple{inputs, targets});
  const double before = loss_of(model).item();
  for (int epoch = 0; epoch < 45; ++epoch) {
    adjust(state, rate(epoch));
    train([](const Net& m, const Array& x, const Array& y) { return mean(square(m(x) - y)); }, model, data, state);
  }
  EXPECT_LT(loss_of(model).item(), 0.1 * before);
}

TEST(Optimisers, StatesAndRulesStream) {
  Net model = fresh_net();
  State state = setup(Descent{}, model);
  freeze(state, "hidden");
  std::ostringstream text;
  text << Adam{} << "\n" << state;
  EXPECT_EQ(text.str(),
            "Adam(0.001, (0.9, 0.999), 1.0e-8)\n"
            "(hidden = (weight = Leaf(Descent(0.1), nothing, frozen = true), bias = Leaf(Descent(0.1), nothing, "
            "frozen = true)), out = (weight = Leaf(Descent(0.1), nothing), bias = Leaf(Descent(0.1), nothing)))");
}

}  // namespace
