// Rules that divide by a running size of the gradient: Adam and its kin. Factors that are equal for all elements are
// computed on the host, in double, so that few ops are recorded; Float16 keeps the order of Optimisers.jl, as folded
// factors would leave its range.
#include <rosin/rules.hpp>

#include <cmath>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>

#include "ops/moments.hpp"
#include "optim/numbers.hpp"

namespace rosin {
namespace {

/// weight*old + (1 - weight)*new.
Array running(double weight, const Array& old, const Array& now) {
  return running_mean(old, now, number(weight), number(1 - weight));
}
Array running_squared(double weight, const Array& old, const Array& now) {
  return running_square(old, now, number(weight), number(1 - weight));
}

/// How far the running means are on their way: their divisors by powers of beta.
struct Correction {
  double first, root;  // of the mean; of the root of the mean square

  explicit Correction(const std::array<double, 2>& power) : first(1 - power[0]), root(std::sqrt(1 - power[1])) {}
  Array scale(double eta) const { return number(eta * root / first); }
  Array epsilon(double value) const { return number(value * root); }
};

/// eta * mean/(1 - power[0]) / (sqrt(square/(1 - power[1])) + epsilon), the powers being those of beta.
Array quotient(const Array& mean, const Array& square, double eta, const std::array<double, 2>& power, double epsilon) {
  if (is_half(mean)) {
    return mean / number(1 - power[0]) / (sqrt(square / number(1 - power[1])) + number(epsilon)) * number(eta);
  }
  const Correction correction(power);
  return scaled_by_root(mean, square, correction.scale(eta), correction.epsilon(epsilon));
}

std::array<double, 2> powers(const std::array<double, 2>& beta, int64_t t) {
  Step& step = Step::of_thread();
  return {step.power(beta[0], t), step.power(beta[1], t)};
}

Moments no_moments(const Array& x) { return {zeros_like(x), zeros_like(x), counter(0)}; }

/// Counts the step and takes g in; the powers of beta of this step.
std::array<double, 2> take_in(Moments& state, const Array& g, const std::array<double, 2>& beta) {
  state.m = running(beta[0], state.m, g);
  state.v = running_squared(beta[1], state.v, g);
  return powers(beta, counted(state.t));
}

}  // namespace

RMSProp::State RMSProp::init(const Array& x) const { return {zeros_like(x), centred ? zeros_like(x) : Array()}; }
Array RMSProp::apply(State& state, const Array&, const Array& g) const {
  state.q = running_squared(rho, state.q, g);
  Array spread = state.q;
  if (centred) {
    state.l = running(rho, state.l, g);
    spread = state.q - square(state.l);
  }
  return g * number(eta) / (sqrt(spread) + number(epsilon_of(g, epsilon)));
}

Moments Adam::init(const Array& x) const { return no_moments(x); }
Array Adam::apply(Moments& state, const Array&, const Array& g) const {
  const auto power = take_in(state, g, beta);
  return quotient(state.m, state.v, eta, power, epsilon_of(g, epsilon));
}

Array Adam::moved(Moments& state, const Array& x, const Array& g) const {
  if (is_half(state.m)) return x - apply(state, x, g);
  const Correction correction(take_in(state, g, beta));
  return moved_by_root(x, state.m, state.v, correction.scale(eta), correction.epsilon(epsilon_of(g, epsilon)));
}

Moments AdamW::init(const Array& x) const { return no_moments(x); }
Array AdamW::apply(Moments& state, const Array& x, const Array& g) const {
  const auto power = take_in(state, g, beta);
  const Array d = quotient(state.m, state.v, eta, power, epsilon_of(g, epsilon));
  return d + number(couple ? eta * lambda : lambda) * x;
}

Moments RAdam::init(const Array& x) const { return no_moments(x); }
Array RAdam::apply(Moments& state, const Array&, const Array& g) const {
  const auto power = take_in(state, g, beta);
  const double t = state.t.item(), last = 2 / (1 - beta[1]) - 1;
  const double r = last - 2 * t * power[1] / (1 - power[1]);
  if (r <= 4) return state.m * number(eta / (1 - power[0]));
  const double scale = std::sqrt((r - 4) * (r - 2) * last / ((last - 4) * (last - 2) * r));
  return quotient(state.m, state.v, eta * scale, power, epsilon_of(g, epsilon));
}

AdaMax::State AdaMax::init(const Array& x) const { return {zeros_like(x), zeros_like(x), counter(0)}; }
Array AdaMax::apply(State& state, const Array&, const Array& g) const {
  state.m = running(beta[0], state.m, g);
  state.u = max(number(beta[1]) * state.u, abs(g));
  const auto power = powers(beta, counted(state.t));
  return number(eta / (1 - power[0])) * state.m / (state.u + number(epsilon_of(g, epsilon)));
}

OAdam::State OAdam::init(const Array& x) const { return {zeros_like(x), zeros_like(x), counter(0), zeros_like(x)}; }
Array OAdam::apply(State& state, const Array&, const Array& g) const {
  state.m = running(beta[0], state.m, g);
  state.v = running_squared(beta[1], state.v, g);
  const Array before = state.term;
  state.term = quotient(state.m, state.v, eta, powers(beta, counted(state.t)), epsilon_of(g, epsilon));
  return number(2) * state.term - before;
}

Moments NAdam::init(const Array& x) const { return no_moments(x); }
Array NAdam::apply(Moments& state, const Array&, const Array& g) const {
  const auto power = take_in(state, g, beta);
  const double ahead = beta[0] / (1 - beta[0] * power[0]), now = (1 - beta[0]) / (1 - power[0]);
  const Array mean = number(ahead) * state.m + number(now) * g;
  const Array size = sqrt(state.v * number(beta[1] / (1 - power[1]))) + number(epsilon_of(g, epsilon));
  return mean / size * number(eta);
}

AMSGrad::State AMSGrad::init(const Array& x) const {
  const double start = epsilon_of(x, epsilon);
  return {full_like(x, start), full_like(x, start), full_like(x, start)};
}
Array AMSGrad::apply(State& state, const Array&, const Array& g) const {
  state.m = running(beta[0], state.m, g);
  state.v = running_squared(beta[1], state.v, g);
  state.w = max(state.w, state.v);
  return number(eta) * state.m / (sqrt(state.w) + number(epsilon_of(g, epsilon)));
}

AdaGrad::State AdaGrad::init(const Array& x) const { return {full_like(x, epsilon_of(x, epsilon))}; }
Array AdaGrad::apply(State& state, const Array&, const Array& g) const {
  state.a = state.a + square(g);
  return g * number(eta) / (sqrt(state.a) + number(epsilon_of(g, epsilon)));
}

AdaDelta::State AdaDelta::init(const Array& x) const { return {zeros_like(x), zeros_like(x)}; }
Array AdaDelta::apply(State& state, const Array&, const Array& g) const {
  const Array small = number(epsilon_of(g, epsilon));
  state.a = running(rho, state.a, square(g));
  const Array d = g * sqrt(state.e + small) / sqrt(state.a + small);
  state.e = running(rho, state.e, square(d));
  return d;
}

AdaBelief::State AdaBelief::init(const Array& x) const { return {zeros_like(x), zeros_like(x), counter(0)}; }
Array AdaBelief::apply(State& state, const Array&, const Array& g) const {
  const double small = epsilon_of(g, epsilon);
  state.m = running(beta[0], state.m, g);
  state.s = running(beta[1], state.s, square(g - state.m)) + number(small);
  return quotient(state.m, state.s, eta, powers(beta, counted(state.t)), small);
}

}  // namespace rosin
