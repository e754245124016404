// A loss scale that finds itself, which Float16 needs: small gradients would become 0 in it, so the loss is multiplied
// before the walk back and the gradients divided after it, in Float32. Read first: optim.hpp, autocast.hpp.
//
//   auto state = setup(LossScale{Adam{.eta = 1e-3}}, model);
//   auto [loss, grad] = withgradient([&](const Model& m) { return scaled_loss(state, f(m)); }, model);
//   update(state, model, grad);
#pragma once

#include <cstdint>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/optim.hpp>
#include <rosin/rule.hpp>

namespace rosin {

/// How the scale moves. Source: torch.amp.GradScaler.
struct LossScaleOptions {
  double init = 65536;      // what it begins as
  double growth = 2;        // its factor after `interval` steps without an overflow
  double backoff = 0.5;     // its factor after a step with one
  int64_t interval = 2000;  // steps
};

/// For setup: the rule with a loss scale, which the state holds. update() divides the gradients by it first, before
/// anything looks at them (ClipGlobalNorm). A step with a gradient that is NaN or infinite is skipped: parameters, what
/// the rule keeps and running statistics stay, and the scale falls; no error comes of that. Devices find out by
/// themselves, so that nobody waits; rules that count steps on the host (Adam's bias correction) count skipped ones
/// too there, where on the CPU they do not. Of a state that processes share out (distributed::Optimizer with `shard`)
/// all skip a step in which one of them finds such a gradient; they wait for each other there.
template <Rule R> struct LossScale {
  R rule;
  LossScaleOptions options;

  explicit LossScale(R inner, const LossScaleOptions& how = {}) : rule(std::move(inner)), options(how) {}
};

/// The scale now; reading it waits for the steps before.
struct LossScaleStatus {
  double scale = 1;
  int64_t good = 0;     // steps since it last changed
  int64_t skipped = 0;  // steps that changed nothing, of all
};

namespace detail {

/// Gives a state a loss scale. `keeps_wide`: the rule takes Float32 gradients of half parameters. Error (argument): an
/// option that cannot be, a state that processes share out.
ROSIN_API void add_loss_scale(State& state, const LossScaleOptions& options, bool keeps_wide);

}  // namespace detail

/// As setup for rules. The scale is saved, moved and copied with the state. Error (argument): init or growth that is
/// not positive or finite, growth below 1, backoff outside of (0, 1], interval < 1.
template <Rule R, class M> State setup(const LossScale<R>& rule, const M& model) {
  static_assert(!reflect::ExchangesInside<R> || reflect::ScalesGradients<R>,
                "rosin: in a LossScale, distributed::Optimizer goes around the other rules, so that all processes see "
                "whether a gradient is finite");
  State state = setup(rule.rule, model);
  detail::add_loss_scale(state, rule.options, reflect::ReplacesParameter<R>);
  return state;
}

/// loss times the state's scale, in Float32, or the loss itself where the state has none. train() does that itself.
ROSIN_API Array scaled_loss(const State& state, const Array& loss);
/// Error (argument): the state has no loss scale.
ROSIN_API LossScaleStatus loss_scale(const State& state);

}  // namespace rosin
