// Conversions of the preview domain's rules of optimisation: a rate, the number of steps so far, then for all
// parameters their values, gradients and moments. Read first: convert.hpp.
#include <cmath>

#include <rosin/elementwise.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// What one parameter has, and what becomes of it: the value, then its moments.
struct Trained {
  Array rate;
  int64_t step = 0;
  Array value, slope;  // the slope with the share of decay
  Arrays moments;
};

using Rule = Arrays(const NodeCall& call, const Trained& p);

/// `kinds`: arrays of each parameter, value and gradient among them.
Arrays trained(const NodeCall& call, size_t kinds, Rule* rule) {
  const size_t all = call.input_count() < 2 ? 0 : call.input_count() - 2, count = all / kinds;
  if (all == 0 || all % kinds != 0) call.refuse("all parameters must have all arrays", std::to_string(all));
  Arrays results(count * (kinds - 1));
  for (size_t i = 0; i < count; ++i) {
    const Array& value = call[2 + i];
    Trained p{call[0], call.integer_in(1), value, call.real("norm_coefficient", 0) * value + call[2 + count + i], {}};
    for (size_t k = 2; k < kinds; ++k) p.moments.push_back(call[2 + k * count + i]);
    const Arrays made = rule(call, p);
    for (size_t k = 0; k < made.size(); ++k) results[k * count + i] = made[k];
  }
  return results;
}

Arrays adagrad_step(const NodeCall& call, const Trained& p) {
  const Array rate = p.rate / (1 + static_cast<double>(p.step) * call.real("decay_factor", 0));
  const Array square_sum = p.moments[0] + square(p.slope);
  return {p.value - rate * p.slope / (sqrt(square_sum) + call.real("epsilon", 1e-6)), square_sum};
}

Arrays adam_step(const NodeCall& call, const Trained& p) {
  const double alpha = call.real("alpha", 0.9), beta = call.real("beta", 0.999), t = static_cast<double>(p.step);
  const Array mean = alpha * p.moments[0] + (1 - alpha) * p.slope;
  const Array spread = beta * p.moments[1] + (1 - beta) * square(p.slope);
  const Array rate = p.step > 0 ? p.rate * (std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t))) : p.rate;
  const Array value = p.value - rate * (mean / (sqrt(spread) + call.real("epsilon", 1e-6)));
  return {(1 - call.real("norm_coefficient_post", 0)) * value, mean, spread};
}

Arrays momentum_step(const NodeCall& call, const Trained& p) {
  const double alpha = call.real("alpha", 0), beta = p.step > 0 ? call.real("beta", 0) : 1;
  const Array moment = alpha * p.moments[0] + beta * p.slope;
  const bool looks_ahead = call.text("mode", "standard") == "nesterov";
  return {p.value - p.rate * (looks_ahead ? p.slope + alpha * moment : moment), moment};
}

}  // namespace

Arrays adagrad(const NodeCall& call) { return trained(call, 3, adagrad_step); }
Arrays adam(const NodeCall& call) { return trained(call, 4, adam_step); }
Arrays momentum(const NodeCall& call) { return trained(call, 3, momentum_step); }

}  // namespace rosin::onnx
