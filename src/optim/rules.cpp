// Rules that keep at most one running array, and those that change gradients. Read next: rules_adaptive.cpp.
#include <rosin/rules.hpp>

#include <limits>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/reduce.hpp>

#include "optim/numbers.hpp"

namespace rosin {

Array detail::converted_parameter(const Array& x, DType type) { return x.dtype() == type ? x : cast(x, type); }
Array detail::moved_parameter(const Array& x, const Array& d) { return x - d; }

Descent::State Descent::init(const Array&) const { return {}; }
Array Descent::apply(State&, const Array&, const Array& g) const { return number(eta) * g; }

Momentum::State Momentum::init(const Array& x) const { return {zeros_like(x)}; }
Array Momentum::apply(State& state, const Array&, const Array& g) const {
  state.m = number(rho) * state.m + number(eta) * g;
  return state.m;
}

Nesterov::State Nesterov::init(const Array& x) const { return {zeros_like(x)}; }
Array Nesterov::apply(State& state, const Array&, const Array& g) const {
  const Array step = number(eta) * g;
  const Array d = number(1 + rho) * step - number(rho * rho) * state.v;
  state.v = number(rho) * state.v - step;
  return d;
}

Lion::State Lion::init(const Array& x) const { return {zeros_like(x)}; }
Array Lion::apply(State& state, const Array&, const Array& g) const {
  const Array direction = number(beta[0]) * state.m + number(1 - beta[0]) * g;
  state.m = number(beta[1]) * state.m + number(1 - beta[1]) * g;
  return number(eta) * sign(direction);
}

Rprop::State Rprop::init(const Array& x) const { return {zeros_like(x), full_like(x, eta)}; }
Array Rprop::apply(State& state, const Array&, const Array& g) const {
  const Array turn = state.g * g, zero = number(0);
  const Array longer = min(number(ell[1]) * state.h, number(gamma[1]));
  const Array shorter = max(number(ell[0]) * state.h, number(gamma[0]));
  const Array turned = turn < zero;
  state.h = where(turn > zero, longer, where(turned, shorter, state.h));
  state.g = where(turned, zero, g);
  return state.h * sign(state.g);
}

ClipGrad::State ClipGrad::init(const Array&) const { return {}; }
Array ClipGrad::apply(State&, const Array&, const Array& g) const { return max(min(g, number(delta)), number(-delta)); }

ClipNorm::State ClipNorm::init(const Array&) const { return {}; }
Array ClipNorm::apply(State&, const Array&, const Array& g) const {
  int dims[Shape::max_rank];
  for (int d = 0; d < g.rank(); ++d) dims[d] = d;
  const Array size = norm(g, Dims(std::span<const int>(dims, static_cast<size_t>(g.rank()))), p);
  if (throws) require_finite(size, "ClipNorm: the norm of the gradient must be finite");
  return g * min(number(omega) / size, number(1));
}

WeightDecay::State WeightDecay::init(const Array&) const { return {}; }
Array WeightDecay::apply(State&, const Array& x, const Array& g) const { return g + number(lambda) * x; }

SignDecay::State SignDecay::init(const Array&) const { return {}; }
Array SignDecay::apply(State&, const Array& x, const Array& g) const { return g + number(lambda) * sign(x); }

void AccumGrad::check() const {
  if (n >= 1) return;
  throw Error(ErrorKind::argument, "setup: AccumGrad must accumulate at least one gradient, got " + std::to_string(n) +
                                       "; n = 1 passes each on");
}

AccumGrad::State AccumGrad::init(const Array& x) const { return {zeros_like(x), counter(1)}; }
Array AccumGrad::apply(State& state, const Array&, const Array& g) const {
  const int64_t count = state.count.item<int64_t>();
  const Array share = g / number(static_cast<double>(n));
  state.acc = count == 1 ? share : state.acc + share;
  state.count = counter(count >= n ? 1 : count + 1);
  return count >= n ? state.acc : Array();
}

}  // namespace rosin
