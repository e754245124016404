// Distributions as values: see rosin/densities.hpp. All is made of recorded ops.
#include <rosin/densities.hpp>

#include <limits>
#include <numbers>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/distributions.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/special.hpp>

#include "graph/node.hpp"
#include "graph/record.hpp"
#include "ops/loss_terms.hpp"

namespace rosin {
namespace {

constexpr double log_root_of_turn = 0.918938533204672742;  // log(sqrt(2*pi))

Shape common_shape(const char* of, const Array& a, const Array& b) {
  return broadcast_shapes(of, a.shape(), b.shape());
}

/// The type in which parameters draw: that of the first that is an array of floats.
DType float_of(const Array& a, const Array& b) {
  for (const Array* x : {&a, &b}) {
    if (!x->node()->weak && is_float(x->dtype())) return x->dtype();
  }
  return Float32;
}

/// x where `holds`, else -Infinity.
Array supported(const Array& holds, const Array& x) {
  return where(holds, x, -std::numeric_limits<double>::infinity());
}

/// log B(a, b).
Array log_beta(const Array& a, const Array& b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }

/// log(1 - tanh(y)^2), without cancellation.
Array log_slope_of_tanh(const Array& y) { return 2 * (std::numbers::ln2 - y - softplus(-2 * y)); }

Array log_probabilities(const Array& logits) { return logsoftmax(logits, 0); }

}  // namespace

Array Normal::sample(Rng& rng) const { return sample(common_shape("Normal", mean, deviation), rng); }
Array Normal::sample(const Shape& shape, Rng& rng) const {
  return normal(rng, shape, mean, deviation, float_of(mean, deviation));
}
Array Normal::log_prob(const Array& x) const {
  return -0.5 * square((x - mean) / deviation) - log(deviation) - log_root_of_turn;
}
Array Normal::entropy() const {
  return expand(log(deviation) + (0.5 + log_root_of_turn), common_shape("Normal", mean, deviation));
}
Array kl_divergence(const Normal& p, const Normal& q) {
  const Array ratio = square(p.deviation / q.deviation);
  return 0.5 * (ratio + square((p.mean - q.mean) / q.deviation) - 1 - log(ratio));
}

Array Laplace::sample(Rng& rng) const { return sample(common_shape("Laplace", mean, scale), rng); }
Array Laplace::sample(const Shape& shape, Rng& rng) const {
  return laplace(rng, shape, mean, scale, float_of(mean, scale));
}
Array Laplace::log_prob(const Array& x) const { return -abs(x - mean) / scale - log(2 * scale); }
Array Laplace::entropy() const { return expand(1 + log(2 * scale), common_shape("Laplace", mean, scale)); }
Array kl_divergence(const Laplace& p, const Laplace& q) {
  const Array distance = abs(p.mean - q.mean);
  return log(q.scale / p.scale) + (p.scale * exp(-distance / p.scale) + distance) / q.scale - 1;
}

Array Uniform::sample(Rng& rng) const { return sample(common_shape("Uniform", low, high), rng); }
Array Uniform::sample(const Shape& shape, Rng& rng) const {
  return uniform(rng, shape, low, high, float_of(low, high));
}
Array Uniform::log_prob(const Array& x) const { return supported(logical_and(x >= low, x < high), -log(high - low)); }
Array Uniform::entropy() const { return log(high - low); }

Array Exponential::sample(Rng& rng) const { return sample(rate.shape(), rng); }
Array Exponential::sample(const Shape& shape, Rng& rng) const {
  return exponential(rng, shape, rate, float_of(rate, rate));
}
Array Exponential::log_prob(const Array& x) const { return supported(x >= 0, log(rate) - rate * x); }
Array Exponential::entropy() const { return 1 - log(rate); }
Array kl_divergence(const Exponential& p, const Exponential& q) {
  const Array ratio = q.rate / p.rate;
  return ratio - 1 - log(ratio);
}

Array Gamma::sample(Rng& rng) const { return sample(common_shape("Gamma", concentration, scale), rng); }
Array Gamma::sample(const Shape& shape, Rng& rng) const {
  return gamma(rng, shape, concentration, scale, float_of(concentration, scale));
}
Array Gamma::log_prob(const Array& x) const {
  const Array y = x / scale;
  const Array inside = xlogy(concentration - 1, where(x > 0, y, 1)) - y - log(scale) - lgamma(concentration);
  return supported(x > 0, inside);
}
Array Gamma::entropy() const {
  return concentration + log(scale) + lgamma(concentration) + (1 - concentration) * digamma(concentration);
}
Array kl_divergence(const Gamma& p, const Gamma& q) {
  return (p.concentration - q.concentration) * digamma(p.concentration) - lgamma(p.concentration) +
         lgamma(q.concentration) + q.concentration * log(q.scale / p.scale) + p.concentration * (p.scale / q.scale - 1);
}

Array Beta::sample(Rng& rng) const { return sample(common_shape("Beta", a, b), rng); }
Array Beta::sample(const Shape& shape, Rng& rng) const { return beta(rng, shape, a, b, float_of(a, b)); }
Array Beta::log_prob(const Array& x) const {
  const Array holds = logical_and(x >= 0, x <= 1), inside = where(holds, x, 0.5);
  return supported(holds, xlogy(a - 1, inside) + xlog1py(b - 1, -inside) - log_beta(a, b));
}
Array Beta::entropy() const {
  const Array both = a + b;
  return log_beta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (both - 2) * digamma(both);
}
Array kl_divergence(const Beta& p, const Beta& q) {
  const Array by_a = p.a - q.a, by_b = p.b - q.b;
  return log_beta(q.a, q.b) - log_beta(p.a, p.b) + by_a * digamma(p.a) + by_b * digamma(p.b) -
         (by_a + by_b) * digamma(p.a + p.b);
}

Array Poisson::sample(Rng& rng) const { return sample(rate.shape(), rng); }
Array Poisson::sample(const Shape& shape, Rng& rng) const { return poisson(rng, shape, rate); }
Array Poisson::log_prob(const Array& x) const {
  const Array count = cast(x, float_of(rate, x));
  const Array holds = logical_and(count >= 0, eq(floor(count), count)), inside = where(holds, count, 0);
  return supported(holds, xlogy(inside, rate) - rate - lgamma(inside + 1));
}
Array kl_divergence(const Poisson& p, const Poisson& q) { return xlogy(p.rate, p.rate / q.rate) - p.rate + q.rate; }

Array Bernoulli::sample(Rng& rng) const { return sample(logits.shape(), rng); }
Array Bernoulli::sample(const Shape& shape, Rng& rng) const {
  return cast(bernoulli(rng, sigmoid(logits), shape), float_of(logits, logits));
}
Array Bernoulli::log_prob(const Array& x) const {
  const Array y = cast(x, float_of(logits, x));
  return supported(logical_or(eq(y, 0), eq(y, 1)), -logit_entropy(logits, y));
}
Array Bernoulli::entropy() const { return logit_entropy(logits, sigmoid(logits)); }
Array kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  const Array chance = sigmoid(p.logits);
  return logit_entropy(q.logits, chance) - logit_entropy(p.logits, chance);
}

Array Categorical::sample(Rng& rng) const { return categorical(rng, logits); }
Array Categorical::log_prob(const Array& labels) const {
  return squeeze(take_along(log_probabilities(logits), unsqueeze(labels, 0), 0), 0);
}
Array Categorical::entropy() const {
  const Array logs = log_probabilities(logits);
  return -squeeze(sum(masked_product(exp(logs), logs), 0), 0);
}
Array kl_divergence(const Categorical& p, const Categorical& q) {
  const Array logs = log_probabilities(p.logits);
  return squeeze(sum(masked_product(exp(logs), logs - log_probabilities(q.logits)), 0), 0);
}

Array TanhNormal::sample(Rng& rng) const { return tanh(Normal{mean, deviation}.sample(rng)); }
Array TanhNormal::sample(const Shape& shape, Rng& rng) const {
  return tanh(Normal{mean, deviation}.sample(shape, rng));
}
TanhNormal::Draw TanhNormal::sample_with_log_prob(Rng& rng) const {
  const Normal normal{mean, deviation};
  const Array y = normal.sample(rng);
  return {tanh(y), normal.log_prob(y) - log_slope_of_tanh(y)};
}
Array TanhNormal::log_prob(const Array& x) const {
  const Array holds = abs(x) < 1, y = atanh(where(holds, x, 0));
  return supported(holds, Normal{mean, deviation}.log_prob(y) - log_slope_of_tanh(y));
}

}  // namespace rosin
