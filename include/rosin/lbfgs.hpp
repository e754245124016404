// LBFGS: a quasi-Newton method for losses of all data at once, such as those of physics-informed networks.
// Read first: grad.hpp, destructure.hpp.
#pragma once

#include <cstdint>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/destructure.hpp>
#include <rosin/export.hpp>
#include <rosin/grad.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

struct LbfgsOptions {
  int64_t iterations = 20;           // at most
  int64_t history = 10;              // changes that the curvature is estimated from
  double eta = 1;                    // the first step that a line search tries
  double gradient_tolerance = 1e-7;  // ends where no element of the gradient is larger
  double change_tolerance = 1e-9;    // ends where neither a parameter nor the loss changes by more
  int64_t evaluations = 0;           // of the loss, after which no step begins; 0: iterations * 5 / 4
};

struct LbfgsResult {
  double loss = 0;          // of the model as it is now
  int64_t iterations = 0;   // steps taken
  int64_t evaluations = 0;  // of loss and gradient
};

namespace detail {

using LossOfVector = SmallFunction<std::pair<double, Array>(const Array& x)>;
/// From x on, which becomes the result. Errors: argument (options), numeric (the loss at x is not finite).
ROSIN_API LbfgsResult lbfgs(const LossOfVector& loss, Array& x, const LbfgsOptions& options);

}  // namespace detail

/// Goes down loss(model), a number, by limited-memory BFGS with a line search for the strong Wolfe conditions (1e-4 and
/// 0.9); the model's trained arrays become the result. The loss must give the same value for the same model: no
/// dropout, no batches, no running statistics. Errors: argument (options), numeric (the first loss is not finite; the
/// model stays as it was). Source: Nocedal, Wright: Numerical Optimization (2006), algorithms 7.4, 3.5 and 3.6;
/// torch.optim.LBFGS(line_search_fn="strong_wolfe"), whose steps these are.
///
///     const LbfgsResult result = lbfgs([&](const Chain& m) { return mse(m(x), y); }, model, {.iterations = 200});
template <class F, Walkable M> LbfgsResult lbfgs(const F& loss, M& model, const LbfgsOptions& options = {}) {
  auto [x, restructure] = destructure(model);
  const auto evaluated = [&loss, &back = restructure](const Array& flat) {
    const auto found = withgradient([&](const Array& v) { return loss(back(v)); }, flat);
    return std::pair(found.value.template item<double>(), found.gradient);
  };
  const LbfgsResult result = detail::lbfgs(detail::LossOfVector(evaluated), x, options);
  model = restructure(model, x);
  return result;
}

}  // namespace rosin
