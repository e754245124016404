// Distributions as values: densities, entropies and divergences of PyTorch, and what draws are.
#include <rosin/densities.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rule.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using Inputs = std::vector<Array>;
using oracles::OracleCase;

constexpr double infinite = std::numeric_limits<double>::infinity();

Uniform uniform_of(const Array& low, const Array& width) { return {low, low + width}; }

/// f(distribution of the parameters from `first` on).
template <class F> Array with_distribution(const std::string& name, const Inputs& x, size_t first, F f) {
  const Array& a = x[first];
  if (name == "Exponential") return f(Exponential{a});
  if (name == "Poisson") return f(Poisson{a});
  if (name == "Bernoulli") return f(Bernoulli{a});
  if (name == "Categorical") return f(Categorical{a});
  const Array& b = x[first + 1];
  if (name == "Normal") return f(Normal{a, b});
  if (name == "Laplace") return f(Laplace{a, b});
  if (name == "Uniform") return f(uniform_of(a, b));
  if (name == "Gamma") return f(Gamma{a, b});
  if (name == "Beta") return f(Beta{a, b});
  return f(TanhNormal{a, b});
}

Inputs log_prob_of(const OracleCase& e, const Inputs& x) {
  return {with_distribution(e.attributes.at("of"), x, 0, [&](const auto& p) { return p.log_prob(x.back()); })};
}

Inputs entropy_of(const OracleCase& e, const Inputs& x) {
  return {with_distribution(e.attributes.at("of"), x, 0, [&](const auto& p) {
    if constexpr (requires { p.entropy(); }) return p.entropy();
    else return Array();
  })};
}

Inputs divergence_of(const OracleCase& e, const Inputs& x) {
  return {with_distribution(e.attributes.at("of"), x, 0, [&]<class P>(const P& p) {
    return with_distribution(e.attributes.at("of"), x, x.size() / 2, [&]<class Q>(const Q& q) {
      if constexpr (std::is_same_v<P, Q> && requires { kl_divergence(p, q); }) return kl_divergence(p, q);
      else return Array();
    });
  })};
}

TEST(Densities, MatchPyTorch) {
  oracles::run_oracles("densities.txt",
                       {{"log_prob", log_prob_of}, {"entropy", entropy_of}, {"kl_divergence", divergence_of}});
}

TEST(Densities, AreNothingOutsideTheSupport) {
  const auto at = [](const auto& p, double x) { return p.log_prob(Array({x}, {1})).item(); };
  EXPECT_EQ(at(Uniform{}, 1), -infinite);
  EXPECT_EQ(at(Uniform{}, 0), 0);
  EXPECT_EQ(at(Exponential{}, -1), -infinite);
  EXPECT_EQ(at(Gamma{2, 1}, 0), -infinite);
  EXPECT_EQ(at(Beta{1, 1}, 0), 0);
  EXPECT_EQ(at(Beta{2, 1}, 1.5), -infinite);
  EXPECT_EQ(at(Poisson{2}, 1.5), -infinite);
  EXPECT_EQ(at(Bernoulli{0.3}, 2), -infinite);
  EXPECT_EQ(at(TanhNormal{}, 1), -infinite);
  const Array rate = Array({2.0}, {1}), outside = Array({-1.0}, {1});
  EXPECT_EQ(gradient([&](const Array& r) { return sum(exp(Exponential{r}.log_prob(outside))); }, rate).item(), 0);
}

TEST(Densities, ForbiddenClassesCountForNothing) {
  const Categorical p{Array({0.0f, -std::numeric_limits<float>::infinity(), 0.0f}, {3, 1})};
  EXPECT_NEAR(p.entropy().item(), std::log(2), 1e-6);
  EXPECT_EQ(p.log_prob(Array({1}, {1})).item(), -infinite);
  EXPECT_EQ(kl_divergence(p, p).item(), 0);
  EXPECT_TRUE(std::isfinite(gradient([](const Categorical& q) { return sum(q.entropy()); }, p).logits.item(0, 0)));
}

/// Mean and variance of many draws, by which the density is met: E[e^(t log p)] would need more of them.
TEST(Densities, DrawsHaveTheShapeTypeAndMomentsOfTheParameters) {
  Rng rng(5);
  const Shape many{20000};
  const auto moments = [&](const auto& p, double mean_wanted, double variance_wanted) {
    const Array x = cast(p.sample(many, rng), Float64);
    EXPECT_NEAR(mean(x).item(), mean_wanted, 4 * std::sqrt(variance_wanted / 20000));
    EXPECT_NEAR(var(x).item() / variance_wanted, 1, 0.1);
  };
  moments(Normal{2, 3}, 2, 9);
  moments(Laplace{1, 2}, 1, 8);
  moments(Uniform{-1, 2}, 0.5, 0.75);
  moments(Exponential{0.5}, 2, 4);
  moments(Gamma{3, 2}, 6, 12);
  moments(Beta{2, 3}, 0.4, 0.04);
  moments(Poisson{4}, 4, 4);
  moments(Bernoulli{0}, 0.5, 0.25);
  const Array mu = zeros({2, 1}, Float64), sigma = ones({3}, Float64);
  EXPECT_EQ((Normal{mu, 1}.sample(rng).shape()), (Shape{2, 1}));
  EXPECT_EQ((Normal{mu, 1}.sample(rng).dtype()), Float64);
  EXPECT_EQ((Normal{0, reshape(sigma, {1, 3})}.entropy().shape()), (Shape{1, 3}));
  EXPECT_EQ(Categorical{zeros({4, 6})}.sample(rng).shape(), (Shape{6}));
  EXPECT_EQ(Bernoulli{zeros({4})}.sample(rng).dtype(), Float32);
  EXPECT_TRUE(error_of([&] { Normal{zeros({2}), ones({3})}.sample(rng); }).starts_with("Normal: "));
}

TEST(Densities, DrawsOfTheSameGeneratorAreThoseOfTheFunctions) {
  Rng one(3), other(3);
  EXPECT_EQ((Normal{1, 2}.sample({5}, one).to_vector()), normal(other, {5}, 1, 2).to_vector());
}

TEST(Densities, ABoundedDrawKnowsItsDensity) {
  Rng rng(2);
  const TanhNormal p{full({500}, 0.5), full({500}, 1.5)};
  const auto [value, log_prob] = p.sample_with_log_prob(rng);
  const Array inner = lt(abs(value), 0.999f);
  EXPECT_LT(maximum(where(inner, abs(log_prob - p.log_prob(value)), 0)).item(), 2e-3);
  const auto far = TanhNormal{full({4}, 20.0), full({4}, 0.1)}.sample_with_log_prob(rng);
  EXPECT_TRUE(std::isfinite(sum(far.log_prob).item()));
}

TEST(Densities, ParametersAreTrainedAsThoseOfAnyModel) {
  Normal q{zeros({3}), ones({3})};
  const Normal target{full({3}, 2.0), full({3}, 0.5)};
  State state = setup(Adam{0.05f}, q);
  for (int i = 0; i < 300; ++i) {
    update(state, q, gradient([&](const Normal& p) { return sum(kl_divergence(p, target)); }, q));
  }
  EXPECT_NEAR(q.mean.item(1), 2, 1e-2);
  EXPECT_NEAR(q.deviation.item(1), 0.5, 1e-2);
}

}  // namespace
}  // namespace rosin
