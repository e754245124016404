// Rules that look at a parameter as a whole: at its norm, its rows and columns, or its singular values. And what goes
// around any rule or beside it: Lookahead, and averages of models. Read first: rules.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/functor.hpp>
#include <rosin/optim.hpp>
#include <rosin/rules.hpp>
#include <rosin/schedule.hpp>

namespace rosin {

/// Adam's step with weight decay, r = m/(1 - b1^t)/(sqrt(v/(1 - b2^t)) + epsilon) + lambda*x, made as long as the
/// parameter: d = eta * |x|/|r| * r; the ratio is 1 where one of the norms is 0. For large batches. Source: You et al.:
/// Large Batch Optimization for Deep Learning (LAMB, 2020).
struct ROSIN_API Lamb {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double lambda = 0.0;
  double epsilon = 1e-6;

  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
};

/// Adam's division by the root of a mean square, kept for the first two dims as means of rows and columns alone, so
/// that it costs next to no memory; vectors keep it whole. With b = 1 - t^decay and RMS(a) = sqrt(mean(a^2)): v = b*v +
/// (1 - b)*g^2; u = g/sqrt(v); d = max(epsilon, RMS(x)) * min(eta, 1/sqrt(t)) * u / max(1, RMS(u)/clip), and
/// lambda*eta*x is subtracted beside it. Source: Shazeer, Stern: Adafactor (2018); torch.optim.Adafactor, which takes
/// the last two dims, as PyTorch counts them.
struct ROSIN_API Adafactor {
  double eta = 0.01;
  double decay = -0.8;
  double epsilon = 1e-3;
  double clip = 1;
  double lambda = 0.0;

  struct State {
    Array rows;     // nothing for vectors
    Array columns;  // nothing for vectors
    Array v;        // nothing for matrices
    Array t;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// For matrices: a running mean m = rho*m + (1 - rho)*g whose singular values are all brought near 1 by Newton and
/// Schulz's iteration, o of rho*m + (1 - rho)*g (of m where not nesterov); d = eta*(sqrt(max(1, rows/columns))*o +
/// lambda*x). Arrays of more dims are matrices whose columns are the last dim. Vectors move by AdamW with `vector_eta`,
/// beta and epsilon. Source: Jordan et al.: Muon (2024); torch.optim.Muon, whose matrices are BFloat16 in between.
struct ROSIN_API Muon {
  double eta = 0.001;
  double rho = 0.95;
  double lambda = 0.1;
  bool nesterov = true;
  int64_t iterations = 5;
  double vector_eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;

  /// Error (argument): no iteration.
  void check() const;
  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
};

namespace detail {

/// Counts one more step; whether the count divides by `every`.
ROSIN_API bool is_turn(Array& count, int64_t every);
/// Counts one more step and gives the count.
ROSIN_API int64_t next_count(Array& count);
ROSIN_API Array new_count();
/// old + share*(now - old).
ROSIN_API Array between(const Array& old, const Array& now, double share);
[[noreturn]] ROSIN_API void refuse_average(const char* rule, const char* what);

}  // namespace detail

/// Around a rule: after every k steps the parameter goes back to where it was k steps before, but for the share alpha
/// of the way. Source: Zhang et al.: Lookahead Optimizer (2019).
template <Rule R> struct Lookahead {
  int64_t k = 5;
  double alpha = 0.5;
  R rule;
  static constexpr bool elementwise = reflect::is_elementwise<R>();

  struct State {
    Array slow;
    Array t;
    RuleState<R> inner;
  };

  static_assert(!reflect::ExchangesInside<R> || !reflect::ScalesGradients<R>,
                "rosin: Lookahead stands behind ClipGlobalNorm and the rules before it, in the OptimiserChain");

  explicit Lookahead(R inner) : rule(std::move(inner)) {}
  Lookahead(int64_t steps, double share, R inner) : k(steps), alpha(share), rule(std::move(inner)) {}

  State init(const Array& x) const { return {x, detail::new_count(), rule.init(x)}; }
  /// The parameter's new value, or nothing where it stays.
  Array replace(State& state, const Array& x, const Array& g) const {
    const Array fast = reflect::moved(rule, state.inner, x, g);
    if (fast.is_nothing()) return {};
    if (!detail::is_turn(state.t, k)) return fast;
    state.slow = detail::between(state.slow, fast, alpha);
    return state.slow;
  }
  void exchange(std::span<detail::NamedGradient> gradients) const
    requires reflect::ScalesGradients<R>
  {
    rule.exchange(gradients);
  }
  /// Error (argument): k below 1.
  void check() const {
    if (k < 1) detail::refuse_average("Lookahead", "k must be at least 1");
    reflect::check(rule);
  }
  void visit_rules(RuleVisitor& visitor) {
    visitor.option({.name = "k", .integer = &k});
    visitor.option({.name = "alpha", .numbers = &alpha, .count = 1});
    reflect::describe(rule, visitor);
  }
};

/// A rule whose learning rate is that of a schedule at its own count of steps, from 0; adjust() of eta is overruled.
/// Source: ParameterSchedulers.Scheduler.
template <Rule R> struct Scheduler {
  AnyRate rate;
  R rule;
  static constexpr bool elementwise = reflect::is_elementwise<R>();

  struct State {
    Array t;
    RuleState<R> inner;
  };

  Scheduler(AnyRate schedule, R inner) : rate(std::move(schedule)), rule(std::move(inner)) {}

  State init(const Array& x) const { return {detail::new_count(), rule.init(x)}; }
  /// The parameter's new value, or nothing where it stays.
  Array replace(State& state, const Array& x, const Array& g) const {
    R now = rule;
    now.eta = rate(detail::next_count(state.t) - 1);
    return reflect::moved(now, state.inner, x, g);
  }
  void check() const { reflect::check(rule); }
  void visit_rules(RuleVisitor& visitor) { reflect::describe(rule, visitor); }
};

/// AdamW that needs no schedule: gradients are taken at y, which the model holds, between the fast z and an average x
/// of it. v = b2*v + (1 - b2)*g^2; r = g/(sqrt(v/(1 - b2^t)) + epsilon) + lambda*y; y = (1 - c)*y + c*z + s*(b1*(1 - c)
/// - 1)*r; z = z - s*r, with s = eta*min(1, t/warmup) and c the share of max(s)^2 in the sum of these so far. Test and
/// save `schedule_free_average(state, model)`. Source: Defazio et al.: The Road Less Scheduled (2024).
struct ROSIN_API ScheduleFreeAdamW {
  double eta = 0.0025;
  std::array<double, 2> beta = {0.9, 0.999};
  double lambda = 0.0;
  double epsilon = 1e-8;
  int64_t warmup = 0;
  static constexpr bool elementwise = true;

  struct State {
    Array z;
    Array v;
    Array most;   // the largest s
    Array total;  // of its squares
    Array t;
  };
  State init(const Array& x) const;
  /// The parameter's new value.
  Array replace(State& state, const Array& x, const Array& g) const;
};

namespace detail {

/// For schedule_free_average.
ROSIN_API void average_schedule_free(const State& state, ModelEdit model);

}  // namespace detail

/// The model at the averages x = y + (1 - 1/b1)*(z - y) of a state by ScheduleFreeAdamW; parameters of other rules
/// stay. Error (argument): a state of another model.
template <Walkable M> M schedule_free_average(const State& state, const M& model) {
  M average = copy_of(model);
  detail::average_schedule_free(state, average);
  return average;
}

/// The average of what a model's parameters were: `add(model)` after a step. With a decay, below 1, old models count
/// less and less (exponential moving average, EMA): a = decay*a + (1 - decay)*x; without one all count alike
/// (stochastic weight averaging, SWA). The first model is taken as it is; running statistics are averaged too, integers
/// are those of the last one. `model` is what is tested and saved. Error (argument): a decay not in [0, 1), a model of
/// another structure. Sources: Polyak, Juditsky (1992); Izmailov et al.
/// (2018); torch.optim.swa_utils.AveragedModel.
template <Walkable M> struct AveragedModel {
  M model;
  double decay = 0;  // 0: all count alike
  int64_t count = 0;

  void add(const M& now) {
    if (!(decay >= 0 && decay < 1)) detail::refuse_average("AveragedModel", "decay must be in [0, 1)");
    const double share = count == 0 ? 1 : decay > 0 ? 1 - decay : 1 / static_cast<double>(count + 1);
    M next = fmap([&](const Array& old, const Array& x) { return detail::between(old, x, share); }, model, now);
    eval();
    model = std::move(next);
    ++count;
  }
};
template <class M> AveragedModel(M) -> AveragedModel<M>;
template <class M> AveragedModel(M, double) -> AveragedModel<M>;

}  // namespace rosin
