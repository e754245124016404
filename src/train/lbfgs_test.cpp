// LBFGS, judged by torch.optim.LBFGS (tests/oracles/lbfgs.txt).
#include <rosin/lbfgs.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/loss.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/oracle_reader.hpp"

namespace rosin {
namespace {

Array rosenbrock(const Array& x) {
  const Array now = slice(x, 0, 0, -1), next = slice(x, 0, 1, to_end);
  return sum(100 * square(next - square(now)) + square(1 - now));
}

Array quartic(const Array& x) {
  const Array scale = cast(arange(1, x.count() + 1), x.dtype());
  return sum(scale * square(x)) + 0.25 * sum(square(square(x))) + select(x, 0, 0) * select(x, 0, 1);
}

Array logistic(const Array& x) { return sum(softplus(-Array({1.0, -1.0, 1.0, 1.0}, {4}) * x)) + 0.05 * sum(square(x)); }

TEST(Lbfgs, TakesTheStepsOfPyTorch) {
  int cases = 0;
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("lbfgs.txt"))) {
    SCOPED_TRACE(found.op + " in line " + std::to_string(found.line));
    Array (*const loss)(const Array&) = found.op == "rosenbrock" ? rosenbrock
                                        : found.op == "quartic"  ? quartic
                                                                 : logistic;
    Array x(found.inputs[0].values, Shape(found.inputs[0].shape));
    const LbfgsResult result =
        lbfgs(loss, x, {.iterations = found.integers("iterations")[0], .history = found.integers("history")[0]});
    const std::vector<double> got = x.to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(oracles::matches(found.tolerance, "Float64", found.outputs[0].values[i], got[i]))
          << got[i] << ", not " << found.outputs[0].values[i];
    }
    EXPECT_TRUE(oracles::matches(found.tolerance, "Float64", found.outputs[1].values[0], result.loss));
    EXPECT_EQ(result.evaluations, found.integers("count")[0]);
    ++cases;
  }
  EXPECT_EQ(cases, 18);
}

TEST(Lbfgs, TrainsAModel) {
  const Array x = reshape(cast(arange(21), Float32) / 10 - 1, {1, 21}), y = square(x);
  Chain model(Dense(1, 8, tanh), Dense(8, 1));
  const auto loss = [&](const Chain& m) { return mse(m(x), y); };
  const double before = loss(model).item();
  const LbfgsResult result = lbfgs(loss, model, {.iterations = 100, .change_tolerance = 0});
  EXPECT_LT(result.loss, 1e-3 * before);
  EXPECT_NEAR(loss(model).item(), result.loss, 1e-7);
}

TEST(Lbfgs, RefusesWhatCannotBe) {
  Array x = ones({2});
  EXPECT_EQ(
      error_of([&] { lbfgs(rosenbrock, x, {.history = 0}); }, ErrorKind::argument),
      "lbfgs: iterations and evaluations are 0 or more, history 1 or more, eta above 0; got 20, 0, 0 and 1.000000");
  EXPECT_EQ(error_of([&] { lbfgs([](const Array& v) { return sum(log(v - 2)); }, x); }, ErrorKind::numeric),
            "lbfgs: the loss of the first model is nan; begin with another one");
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace rosin
