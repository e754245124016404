// What a rule is: a struct of hyper-parameters with init and apply. Any struct of this form can be given to setup:
//
//   struct SignStep {
//     double eta = 0.01;
//     struct State { Array steps; };                                            // arrays, or structs of arrays
//     State init(const Array& x) const { return {zeros_like(x)}; }              // x is the parameter
//     Array apply(State& state, const Array& x, const Array& g) const {         // the result is subtracted from x
//       state.steps = state.steps + 1;
//       return eta * sign(g);
//     }
//   };
//
// With `static constexpr bool elementwise = true;` it says that each element moves by itself: what apply gives for some
// elements of x and g is that of these elements for all of x and g; what it keeps has the shape of x or is one number;
// and whether it gives nothing follows from how often it was called. Processes that share a state out divide large
// parameters of such rules (distributed::Optimizer).
//
// Read next: rules.hpp (those that exist), optim.hpp (setup and update).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/error.hpp>
#include <rosin/model.hpp>

namespace rosin {

/// One hyper-parameter of a rule, to be shown or changed; one of the pointers is set.
struct RuleOption {
  std::string_view name;
  double* numbers = nullptr;
  int count = 0;
  int64_t* integer = nullptr;
  bool* flag = nullptr;
  DType* type = nullptr;
};

/// Looks at rules with their hyper-parameters; rules inside others come between enter and leave.
class ROSIN_API RuleVisitor {
 public:
  virtual ~RuleVisitor();
  virtual void enter(std::string_view rule) = 0;
  virtual void option(const RuleOption& option) = 0;
  /// What a rule is shown with but does not change and no file keeps. By default it is passed over.
  virtual void label(std::string_view text);
  virtual void leave() = 0;
};

/// What a rule keeps for one parameter.
template <class R> using RuleState = decltype(std::declval<const R&>().init(std::declval<const Array&>()));

namespace detail {

/// X in another type, and x - d.
ROSIN_API Array converted_parameter(const Array& x, DType type);
ROSIN_API Array moved_parameter(const Array& x, const Array& d);

}  // namespace detail

/// Called by apply: stops the whole step with Error (numeric) and leaves the model as it was when the one element of
/// `value` is NaN or infinite. `text` must outlive the step: "ClipNorm: the norm of the gradient must be finite".
ROSIN_API void require_finite(const Array& value, const char* text);

namespace reflect {

/// Rules that give the new parameter rather than what is subtracted from it.
template <class R>
concept ReplacesParameter = requires(const R& rule, RuleState<R>& state, const Array& x) {
  { rule.replace(state, x, x) } -> std::same_as<Array>;
};
template <class R>
concept GivesStep = requires(const R& rule, RuleState<R>& state, const Array& x) {
  { rule.apply(state, x, x) } -> std::convertible_to<Array>;
};

/// x less what the rule gives for g, or nothing where it gives nothing. A rule that can do both in fewer ops does so in
/// a function of its own.
template <class R> Array moved(const R& rule, RuleState<R>& state, const Array& x, const Array& g) {
  if constexpr (requires { rule.moved(state, x, g); }) {
    return rule.moved(state, x, g);
  } else {
    const Array d = rule.apply(state, x, g);
    return d.is_nothing() ? Array() : detail::moved_parameter(x, d);
  }
}

template <class T> RuleOption option_of(std::string_view name, T& value) {
  RuleOption option;
  option.name = name;
  if constexpr (std::is_same_v<T, double>) option.numbers = &value, option.count = 1;
  else if constexpr (std::is_same_v<T, int64_t>) option.integer = &value;
  else if constexpr (std::is_same_v<T, bool>) option.flag = &value;
  else if constexpr (requires { std::tuple_size<T>::value; }) {
    option.numbers = value.data();
    option.count = static_cast<int>(value.size());
  } else {
    static_assert(std::is_same_v<T, double>,
                  "rosin: hyper-parameters of a rule are double, int64_t, bool or std::array of double");
  }
  return option;
}

template <class R> void describe(R& rule, RuleVisitor& visitor) {
  visitor.enter(type_name<R>);
  if constexpr (requires { rule.visit_rules(visitor); }) rule.visit_rules(visitor);
  else FieldsOf<R>::each(rule, [&](std::string_view name, auto& value) { visitor.option(option_of(name, value)); });
  visitor.leave();
}

/// Rules that say so, see above.
template <class R> constexpr bool is_elementwise() {
  if constexpr (requires { R::elementwise; }) return R::elementwise;
  else return false;
}

/// Error (argument) where a hyper-parameter cannot be.
template <class R> void check(const R& rule) {
  if constexpr (requires { rule.check(); }) rule.check();
}

}  // namespace reflect

template <class R>
concept Rule = std::copy_constructible<R> && (reflect::GivesStep<R> || reflect::ReplacesParameter<R>);

namespace detail {

/// Whose the elements of an array are: a process's; or (`part` > 0) so many each one's, in the order of memory, the
/// last one's also what is left; or, where neither is said, all of every one.
struct Owner {
  int process = -1;
  int64_t part = 0;
};

/// The gradient of one parameter, as the rules before what looks at all of them give it.
struct NamedGradient {
  std::string_view parameter;  // its path
  Array gradient;
  Owner owner = {};  // who makes the step for all
};

/// An array that its owner has, and all get.
struct OwnedArray {
  Owner owner;
  Array value;
};

/// A parameter that is to be shared out.
struct SharedParameter {
  int64_t count = 0;
  int64_t bytes = 0;
  bool divides = false;  // its elements move each by itself
};

/// Processes that share out the parameters of a model: each keeps the state of some and makes their steps for all.
class ROSIN_API Sharing {
 public:
  virtual ~Sharing();
  /// The number of this one, and how many there are.
  virtual int process() const = 0;
  virtual int processes() const = 0;
  /// Whose each of these is; the same on every process.
  virtual std::vector<Owner> owners(std::span<const SharedParameter> parameters) const = 0;
  /// Every process says how far it has come; null: well. Throws on all of them where one says otherwise, else whether
  /// all say that `holds`.
  virtual bool agree(const Error* failed, bool holds = true) = 0;
  /// Elements of other owners become theirs; `op` begins messages. Arrays in parts are written to: nobody else may hold
  /// them.
  virtual void spread(const char* op, std::span<OwnedArray> arrays) = 0;
};

/// A rule of any class with what it keeps for one parameter, for compiled code.
class ROSIN_API ErasedRule {
 public:
  virtual ~ErasedRule();
  /// On the heap; the caller owns it. Arrays are shared.
  virtual ErasedRule* copy() const = 0;
  /// Begins anew for this parameter.
  virtual void init(const Array& x) = 0;
  /// What the rule hands on to exchange(): g itself, unless other rules stand before what exchanges; nothing where they
  /// rest until a later step.
  virtual Array begin(const Array& x, const Array& g) = 0;
  /// The new value of x, or nothing where it stays. `d`: what begin() gave, or what an exchange made of it.
  virtual Array finish(const Array& x, const Array& d) = 0;
  virtual void visit_state(ModelEditor& editor, const ModelPath& path) = 0;
  virtual void visit_state(ModelVisitor& visitor, const ModelPath& path) const = 0;
  virtual void describe(RuleVisitor& visitor) = 0;
  /// Whether the rule wants to replace what begin() has given for all parameters, together.
  virtual bool exchanges() const = 0;
  virtual void exchange(std::span<NamedGradient> gradients) const = 0;
  /// The same of running statistics that the step's gradient call has written.
  virtual void exchange_statistics(std::span<NamedGradient> written) const = 0;
  /// Null: every process makes the steps of all parameters.
  virtual Sharing* sharing() const = 0;
  /// Whether each element moves by itself.
  virtual bool is_elementwise() const = 0;
  /// Error (argument) where a hyper-parameter cannot be.
  virtual void check() const = 0;
};

}  // namespace detail

}  // namespace rosin

namespace rosin::reflect {

template <class R>
concept ExchangesGradients = requires(const R& rule, std::span<rosin::detail::NamedGradient> g) { rule.exchange(g); };
template <class R>
concept ExchangesStatistics =
    requires(const R& rule, std::span<rosin::detail::NamedGradient> g) { rule.exchange_statistics(g); };
template <class R>
concept SharesSteps = requires(const R& rule) {
  { rule.sharing() } -> std::same_as<rosin::detail::Sharing*>;
};

/// Rules that replace the gradients of all parameters by themselves, without other processes.
template <class R>
concept ScalesGradients = ExchangesGradients<R> && !SharesSteps<R>;
/// Rules that exchange them with other processes.
template <class R>
concept JoinsProcesses = ExchangesGradients<R> && SharesSteps<R>;
/// Rules with others before one that looks at all gradients: `begin` is what stands before the exchange, and gives what
/// is exchanged, or nothing; `finish` is what comes after it, and gives what apply or replace would give.
template <class R>
concept ExchangesInside = requires(const R& rule, RuleState<R>& state, const Array& x) {
  { rule.begin(state, x, x) } -> std::same_as<Array>;
  { rule.finish(state, x, x) } -> std::same_as<Array>;
};

template <class R> Array begun(const R& rule, RuleState<R>& state, const Array& x, const Array& g) {
  if constexpr (ExchangesInside<R>) return rule.begin(state, x, g);
  else return g;
}
/// What is subtracted from x, of what begun() gave.
template <class R> Array rest_of_step(const R& rule, RuleState<R>& state, const Array& x, const Array& d) {
  if constexpr (ExchangesInside<R>) return rule.finish(state, x, d);
  else return rule.apply(state, x, d);
}
/// The new value of x, of what begun() gave; or nothing.
template <class R> Array finished(const R& rule, RuleState<R>& state, const Array& x, const Array& d) {
  if constexpr (ReplacesParameter<R> && ExchangesInside<R>) {
    return rule.finish(state, x, d);
  } else if constexpr (ReplacesParameter<R>) {
    return rule.replace(state, x, d);
  } else if constexpr (ExchangesInside<R>) {
    const Array step = rule.finish(state, x, d);
    return step.is_nothing() ? Array() : detail::moved_parameter(x, step);
  } else {
    return moved(rule, state, x, d);
  }
}

/// Error (argument) where a rule has options that are those of a whole step, and stands inside another one.
template <class R> void check_inside(const R& rule) {
  check(rule);
  if constexpr (requires { rule.check_inside(); }) rule.check_inside();
}

}  // namespace rosin::reflect

namespace rosin {

template <Rule R> class RuleOf final : public detail::ErasedRule {
 public:
  explicit RuleOf(const R& rule) : rule_(rule), state_() {}

  detail::ErasedRule* copy() const override { return new RuleOf(*this); }
  void init(const Array& x) override { state_ = rule_.init(x); }
  Array begin(const Array& x, const Array& g) override { return reflect::begun(rule_, state_, x, g); }
  Array finish(const Array& x, const Array& d) override { return reflect::finished(rule_, state_, x, d); }
  void visit_state(ModelEditor& editor, const ModelPath& path) override { visit(state_, editor, path); }
  void visit_state(ModelVisitor& visitor, const ModelPath& path) const override { visit(state_, visitor, path); }
  void describe(RuleVisitor& visitor) override { reflect::describe(rule_, visitor); }
  bool exchanges() const override { return reflect::ExchangesGradients<R>; }
  void exchange(std::span<detail::NamedGradient> gradients) const override {
    if constexpr (reflect::ExchangesGradients<R>) rule_.exchange(gradients);
  }
  void exchange_statistics(std::span<detail::NamedGradient> written) const override {
    if constexpr (reflect::ExchangesStatistics<R>) rule_.exchange_statistics(written);
  }
  detail::Sharing* sharing() const override {
    if constexpr (reflect::SharesSteps<R>) return rule_.sharing();
    else return nullptr;
  }
  bool is_elementwise() const override { return reflect::is_elementwise<R>(); }
  void check() const override { reflect::check(rule_); }

 private:
  R rule_;
  RuleState<R> state_;
};

}  // namespace rosin
