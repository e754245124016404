// Rules: how one parameter moves, by the names and equations of Optimisers.jl. A rule is a small struct of
// hyper-parameters with init (what it keeps for a parameter) and apply (what is subtracted from it). Read next:
// optim.hpp, which runs a rule over a whole model.
//
// In all of them x is the parameter, g its gradient of the same shape and type, and the result d stands for x - d. What
// a rule keeps are arrays with x's shape, and counters as 0-d Int64. `t` counts the steps taken; powers of beta come
// from it. Hyper-parameters are numbers of the host: changing them compiles nothing. Float16 takes epsilon as 1e-7 at
// least.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/rule.hpp>

namespace rosin {

/// d = eta*g.
struct ROSIN_API Descent {
  double eta = 0.1;
  static constexpr bool elementwise = true;

  struct State {};
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// m = rho*m + eta*g; d = m.
struct ROSIN_API Momentum {
  double eta = 0.01;
  double rho = 0.9;
  static constexpr bool elementwise = true;

  struct State {
    Array m;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// d = (1 + rho)*eta*g - rho^2*v; v = rho*v - eta*g.
struct ROSIN_API Nesterov {
  double eta = 0.001;
  double rho = 0.9;
  static constexpr bool elementwise = true;

  struct State {
    Array v;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// q = rho*q + (1 - rho)*g^2; d = g*eta/(sqrt(q) + epsilon). Centred: l = rho*l + (1 - rho)*g, and q - l^2 in place of
/// q.
struct ROSIN_API RMSProp {
  double eta = 0.001;
  double rho = 0.9;
  double epsilon = 1e-8;
  bool centred = false;
  static constexpr bool elementwise = true;

  struct State {
    Array q;
    Array l;  // nothing unless centred
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Each element has a step h, which begins as eta, grows by ell[1] while the sign of its gradient stays and shrinks by
/// ell[0] when it turns, within gamma; d = h*sign(g), 0 where the sign turned.
struct ROSIN_API Rprop {
  double eta = 1e-3;
  std::array<double, 2> ell = {0.5, 1.2};
  std::array<double, 2> gamma = {1e-6, 50.0};
  static constexpr bool elementwise = true;

  struct State {
    Array g;  // the gradient of the step before; 0 where the sign turned
    Array h;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// What Adam and its kin keep: running means of g and of g^2, and the steps taken.
struct Moments {
  Array m;
  Array v;
  Array t;
};

/// m = b1*m + (1 - b1)*g; v = b2*v + (1 - b2)*g^2; d = eta * m/(1 - b1^t) / (sqrt(v/(1 - b2^t)) + epsilon).
struct ROSIN_API Adam {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
  /// x less what apply gives.
  Array moved(Moments& state, const Array& x, const Array& g) const;
};

/// Adam with weight decay: with d that of Adam at eta = 1, eta*(d + lambda*x), or eta*d + lambda*x when not coupled.
struct ROSIN_API AdamW {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double lambda = 0.0;
  double epsilon = 1e-8;
  bool couple = true;
  static constexpr bool elementwise = true;

  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
};

/// Rectified Adam: without the division by the mean square while its variance is unknown (the first steps).
struct ROSIN_API RAdam {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
};

/// Adam with a running maximum: u = max(b2*u, |g|); d = eta/(1 - b1^t) * m/(u + epsilon).
struct ROSIN_API AdaMax {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  struct State {
    Array m;
    Array u;
    Array t;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Optimistic Adam: twice Adam's step less the one before.
struct ROSIN_API OAdam {
  double eta = 0.001;
  std::array<double, 2> beta = {0.5, 0.9};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  struct State {
    Array m;
    Array v;
    Array t;
    Array term;  // Adam's step before
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Adam with Nesterov's look ahead.
struct ROSIN_API NAdam {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  Moments init(const Array& x) const;
  Array apply(Moments& state, const Array& x, const Array& g) const;
};

/// Adam with the largest v so far, without bias correction: w = max(w, v); d = eta*m/(sqrt(w) + epsilon). m, v and w
/// begin as epsilon.
struct ROSIN_API AMSGrad {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  struct State {
    Array m;
    Array v;
    Array w;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// a = a + g^2, which begins as epsilon; d = g*eta/(sqrt(a) + epsilon). (torch.optim.Adagrad begins with 0.)
struct ROSIN_API AdaGrad {
  double eta = 0.1;
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  struct State {
    Array a;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// a = rho*a + (1 - rho)*g^2; d = g*sqrt(e + epsilon)/sqrt(a + epsilon); e = rho*e + (1 - rho)*d^2. No learning rate.
struct ROSIN_API AdaDelta {
  double rho = 0.9;
  double epsilon = 1e-8;
  static constexpr bool elementwise = true;

  struct State {
    Array a;
    Array e;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Adam that divides by how far g is from its mean: s = b2*s + (1 - b2)*(g - m)^2 + epsilon.
struct ROSIN_API AdaBelief {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  double epsilon = 1e-16;
  static constexpr bool elementwise = true;

  struct State {
    Array m;
    Array s;
    Array t;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// d = eta*sign(b1*m + (1 - b1)*g) with the old m; then m = b2*m + (1 - b2)*g. Source: Chen et al. (2023).
/// Optimisers.jl differs: it turns the weights of m round, and computes d from the new m.
struct ROSIN_API Lion {
  double eta = 0.001;
  std::array<double, 2> beta = {0.9, 0.999};
  static constexpr bool elementwise = true;

  struct State {
    Array m;
  };
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Gradients between -delta and delta.
struct ROSIN_API ClipGrad {
  double delta = 10;
  static constexpr bool elementwise = true;

  struct State {};
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// The gradient of each array scaled down to a p-norm of omega at most. A norm that is no number stops the step with
/// Error (numeric) and leaves the model as it was, unless `throws` is false.
struct ROSIN_API ClipNorm {
  double omega = 10;
  double p = 2;
  bool throws = true;

  struct State {};
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// The gradients of all parameters together scaled down to a p-norm of omega at most; p may be infinite. In a chain
/// they are what the rules before it give (behind AccumGrad the mean of several steps), and distributed::Optimizer goes
/// around it. A norm that is no number stops the step with Error (numeric) and leaves the model as it was, unless
/// `throws` is false.
/// Source: torch.nn.utils.clip_grad_norm_ (which divides by the norm + 1e-6), Pascanu et al. (2013).
struct ROSIN_API ClipGlobalNorm {
  double omega = 10;
  double p = 2;
  bool throws = true;

  struct State {};
  /// Error (argument): omega or p that is not positive.
  void check() const;
  void exchange(std::span<detail::NamedGradient> gradients) const;
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// g + lambda*x: L2 regularisation.
struct ROSIN_API WeightDecay {
  double lambda = 5e-4;
  static constexpr bool elementwise = true;

  struct State {};
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// g + lambda*sign(x): L1 regularisation.
struct ROSIN_API SignDecay {
  double lambda = 1e-3;
  static constexpr bool elementwise = true;

  struct State {};
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

/// Collects n gradients and passes their mean on with every n-th step; the rules after it rest in between.
struct ROSIN_API AccumGrad {
  int64_t n = 1;
  static constexpr bool elementwise = true;

  struct State {
    Array acc;
    Array count;  // of the gradient that comes next, from 1
  };
  /// Error (argument): n < 1.
  void check() const;
  State init(const Array& x) const;
  Array apply(State& state, const Array& x, const Array& g) const;
};

namespace detail {

/// The place of the first rule that looks at the gradients of all parameters together; as many as there are: none does.
template <class... R> constexpr size_t place_of_exchange() {
  size_t place = 0;
  static_cast<void>((... && (!reflect::ExchangesGradients<R> && ++place > 0)));
  return place;
}

/// How many rules look at all gradients together, and so at those of one process only, or exchange them with others.
template <class... R> inline constexpr int scaling = (0 + ... + int{reflect::ScalesGradients<R>});
template <class... R> inline constexpr int joining = (0 + ... + int{reflect::JoinsProcesses<R>});

}  // namespace detail

/// Rules one after the other, each given what the one before it returns: OptimiserChain(ClipNorm{1}, Adam{}).
template <Rule... R> struct OptimiserChain {
  std::tuple<R...> rules;

  static constexpr size_t count = sizeof...(R), exchanging = detail::place_of_exchange<R...>();
  static constexpr bool joins = detail::joining<R...> > 0;
  static constexpr bool splits = joins || (exchanging > 0 && exchanging < count);  // some rules run before an exchange
  static constexpr bool elementwise = (reflect::is_elementwise<R>() && ...);

  using State = std::tuple<RuleState<R>...>;
  static_assert((!reflect::ReplacesParameter<R> && ...),
                "rosin: MixedPrecision optimisers should wrap the entire OptimiserChain, not be inside it");
  static_assert(detail::scaling<R...> <= (joins ? 0 : 1),
                "rosin: an OptimiserChain has one ClipGlobalNorm, and distributed::Optimizer goes around it");

  explicit OptimiserChain(R... rule) : rules(std::move(rule)...) {}

  State init(const Array& x) const {
    return std::apply([&](const R&... rule) { return State{rule.init(x)...}; }, rules);
  }
  Array apply(State& state, const Array& x, const Array& g) const { return apply_each<0, count>(state, x, g); }
  /// What is looked at of all parameters together is what the rules before give.
  Array begin(State& state, const Array& x, const Array& g) const
    requires splits
  {
    const Array d = apply_each<0, exchanging>(state, x, g);
    return d.is_nothing() ? d : reflect::begun(std::get<exchanging>(rules), std::get<exchanging>(state), x, d);
  }
  Array finish(State& state, const Array& x, const Array& d) const
    requires splits
  {
    const Array rest = reflect::rest_of_step(std::get<exchanging>(rules), std::get<exchanging>(state), x, d);
    return rest.is_nothing() ? rest : apply_each<exchanging + 1, count>(state, x, rest);
  }
  void exchange(std::span<detail::NamedGradient> gradients) const
    requires(exchanging < count)
  {
    std::get<exchanging>(rules).exchange(gradients);
  }
  /// Nobody shares out the steps of a chain: see check_inside.
  detail::Sharing* sharing() const
    requires joins
  {
    return nullptr;
  }
  void check() const {
    std::apply([](const R&... rule) { (reflect::check_inside(rule), ...); }, rules);
  }
  void visit_rules(RuleVisitor& visitor) {
    std::apply([&](R&... rule) { (reflect::describe(rule, visitor), ...); }, rules);
  }

 private:
  /// From the first to before the last, until one gives nothing.
  template <size_t first, size_t last> Array apply_each(State& state, const Array& x, const Array& g) const {
    if constexpr (first == last) {
      return g;
    } else {
      const Array d = std::get<first>(rules).apply(std::get<first>(state), x, g);
      return d.is_nothing() ? d : apply_each<first + 1, last>(state, x, d);
    }
  }
};

/// Runs a rule on a copy of the parameter in another type; the parameter is the rounded copy after each step.
template <Rule R> struct MixedPrecision {
  DType dtype = Float32;
  R rule;
  static constexpr bool elementwise = reflect::is_elementwise<R>();

  struct State {
    Array copy;  // the parameter in `dtype`
    RuleState<R> inner;
  };

  explicit MixedPrecision(R inner) : rule(std::move(inner)) {}
  MixedPrecision(DType type, R inner) : dtype(type), rule(std::move(inner)) {}

  State init(const Array& x) const {
    const Array copy = detail::converted_parameter(x, dtype);
    return {copy, rule.init(copy)};
  }
  /// The parameter's new value, or nothing where it stays.
  Array replace(State& state, const Array& x, const Array& g) const {
    return rounded(state, x, reflect::moved(rule, state.inner, state.copy, detail::converted_parameter(g, dtype)));
  }
  /// As in an OptimiserChain.
  Array begin(State& state, const Array&, const Array& g) const
    requires(reflect::JoinsProcesses<R> || reflect::ExchangesInside<R>)
  {
    return reflect::begun(rule, state.inner, state.copy, detail::converted_parameter(g, dtype));
  }
  Array finish(State& state, const Array& x, const Array& d) const
    requires(reflect::JoinsProcesses<R> || reflect::ExchangesInside<R>)
  {
    return rounded(state, x, reflect::finished(rule, state.inner, state.copy, d));
  }
  void exchange(std::span<detail::NamedGradient> gradients) const
    requires reflect::ExchangesGradients<R>
  {
    rule.exchange(gradients);
  }
  detail::Sharing* sharing() const
    requires reflect::JoinsProcesses<R>
  {
    return nullptr;
  }
  void check() const { reflect::check_inside(rule); }
  void visit_rules(RuleVisitor& visitor) {
    visitor.option({.name = "dtype", .type = &dtype});
    reflect::describe(rule, visitor);
  }

 private:
  Array rounded(State& state, const Array& x, const Array& copy) const {
    if (copy.is_nothing()) return {};
    state.copy = copy;
    return detail::converted_parameter(state.copy, x.dtype());
  }
};

}  // namespace rosin
