// Optimiser state and steps: setup, update, updated, freeze, thaw, adjust. Read next: rules.hpp (Adam and the others).
//
//   auto state = setup(Adam{.eta = 1e-3}, model);
//   auto [loss, grad] = withgradient(f, model);
//   update(state, model, grad);
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/export.hpp>
#include <rosin/known_parts.hpp>
#include <rosin/rule.hpp>
#include <rosin/rules.hpp>
#include <rosin/show.hpp>
#include <rosin/walk.hpp>

namespace rosin {

struct StateTree;

/// What a rule keeps for each trained array of a model, by path: one leaf each, tied arrays share one. A value: copies
/// are independent. It is walked like a model (moved with `state | device`, saved with its arrays: "hidden.weight.m").
/// Hyper-parameters and what is frozen are not arrays and stay with the object.
class ROSIN_API State {
 public:
  /// Of no model.
  State() noexcept = default;
  State(const State& other);
  State(State&& other) noexcept : tree_(std::exchange(other.tree_, nullptr)) {}
  State& operator=(State other) noexcept {
    std::swap(tree_, other.tree_);
    return *this;
  }
  ~State();

  void rosin_visit(ModelEditor& editor, const ModelPath& path);
  void rosin_visit(ModelVisitor& visitor, const ModelPath& path) const;

  /// For the library.
  State(const detail::ErasedRule& rule, ModelView model);
  StateTree* tree() const noexcept { return tree_; }

 private:
  StateTree* tree_ = nullptr;
};

/// The state that a rule begins with. Warns when the model has nothing to train. Error (argument): a learning rate that
/// is negative or NaN, AccumGrad with n < 1.
template <Rule R, class M> State setup(const R& rule, const M& model) {
  static_assert(reflect::check_parts<M>());
  return State(RuleOf<R>(rule), model);
}

/// A rule for the parameters whose paths match, beside that of the others.
class ROSIN_API PathRule {
 public:
  template <Rule R> PathRule(std::string_view pattern, const R& rule) : PathRule(pattern, RuleOf<R>(rule), 0) {}
  PathRule(const PathRule& other) : PathRule(other.pattern_, *other.rule_, 0) {}
  PathRule& operator=(const PathRule&) = delete;
  ~PathRule();

  /// For the library.
  const std::string& pattern() const noexcept { return pattern_; }
  const detail::ErasedRule& rule() const noexcept { return *rule_; }

 private:
  PathRule(std::string_view pattern, const detail::ErasedRule& rule, int);
  std::string pattern_;
  const detail::ErasedRule* rule_;
};

namespace detail {

/// For setup: the leaves that match begin anew with the last rule that does.
ROSIN_API void use_rules(State& state, ModelView model, std::span<const PathRule> rules);

}  // namespace detail

/// The same with other rules for parts of the model: setup(Adam{}, model, {{"head", Descent{0.1}}, {"*.bias",
/// Adam{}}}). Patterns are those of `freeze`; of several that match the last one counts. What a rule does with all
/// gradients together (ClipGlobalNorm, processes that train together) is the first rule's, for all parameters. Errors
/// (argument): as above; nothing matches; no parameter is left to a first rule that looks at all gradients, or
/// processes share the state out.
template <Rule R, class M> State setup(const R& rule, const M& model, std::span<const PathRule> rules) {
  State state = setup(rule, model);
  detail::use_rules(state, model, rules);
  return state;
}
template <Rule R, class M> State setup(const R& rule, const M& model, std::initializer_list<PathRule> rules) {
  return setup(rule, model, std::span<const PathRule>(rules.begin(), rules.size()));
}

struct UpdateOptions {
  /// Refuses a gradient with NaN or infinite elements: the step waits for its values, and leaves all as it was where
  /// there are any. ROSIN_NAN_CHECK=1 does so in every step.
  bool check = false;
};

/// One step, in place: changes the model's trained arrays and the state, and evaluates what is pending on this thread,
/// together, as one program, which for a small model may still run when update returns (docs/performance.md: who reads
/// a value waits for it); arrays that only the model holds are overwritten where they stand. `gradient` has the
/// model's type; places where it holds nothing, and frozen ones, stay as they are with their state. Tied places have
/// one gradient: the same array in each (as `gradient` gives it) counts once, different ones are added. Errors leave
/// model and state as they were, with the running statistics and generators that the gradient call has moved on:
/// argument (state or gradient of another model, gradient and model in each other's place), shape, dtype, numeric (a
/// rule or `check` found a value that is not finite), memory. On a device, what an index or a rule's check is refused
/// for is thrown by a later call that meets it.
ROSIN_API void update(State& state, ModelEdit model, ModelView gradient, UpdateOptions options = {});

/// The p-norm of all arrays of a gradient (or a model) that are trained, together: 0-d, in Float32 or, where one of
/// them is, in Float64. An array that stands in several places counts once; p may be infinite. Nothing is waited for
/// before its value is asked for. Error (argument): p <= 0.
ROSIN_API Array global_norm(ModelView model, double p = 2);

template <class M> struct Updated {
  State state;
  M model;
};
/// The same as values: `state` and `model` stay as they are.
template <Walkable M>
Updated<M> updated(const State& state, const M& model, ModelView gradient, UpdateOptions options = {}) {
  Updated<M> next{state, copy_of(model)};
  update(next.state, next.model, gradient, options);
  return next;
}

/// Leaves whose paths match are not updated, until thawed. A pattern is the path of a parameter or of a part of the
/// model ("encoder", "layers[0].weight", "layers.0.weight"); `*` stands for any letters; "" for the whole model.
/// Error (argument): nothing matches; the nearest path is named.
ROSIN_API void freeze(State& state, std::string_view pattern = {});
ROSIN_API void thaw(State& state, std::string_view pattern = {});

/// New values of hyper-parameters; NaN leaves one as it is. Rules without it stay as they are.
struct Adjustment {
  static constexpr double keep = std::numeric_limits<double>::quiet_NaN();
  double eta = keep;
  double rho = keep;
  std::array<double, 2> beta = {keep, keep};
  double epsilon = keep;
  double lambda = keep;
  double delta = keep;
  double omega = keep;
};

/// Changes hyper-parameters in place; what the rule keeps stays. Error (argument): a learning rate that is negative or,
/// given alone, NaN, nothing given to change, no path matches.
ROSIN_API void adjust(State& state, double eta, std::string_view pattern = {});
ROSIN_API void adjust(State& state, const Adjustment& change, std::string_view pattern = {});
/// The same as a value.
ROSIN_API State adjusted(const State& state, double eta, std::string_view pattern = {});
ROSIN_API State adjusted(const State& state, const Adjustment& change, std::string_view pattern = {});

/// The tree as Flux prints it, in one line: (hidden = (weight = Leaf(Descent(0.1), nothing), bias = ...), ...).
ROSIN_API std::string to_string(const State& state);
/// A rule as Flux prints it: "Adam(0.001, (0.9, 0.999), 1.0e-8)".
ROSIN_API std::string rule_text(const detail::ErasedRule& rule);
template <Rule R> std::string to_string(const R& rule) { return rule_text(RuleOf<R>(rule)); }
template <TextStream Stream> Stream& operator<<(Stream& stream, const State& state) { return stream << show(state); }
template <TextStream Stream, Rule R> Stream& operator<<(Stream& stream, const R& rule) { return stream << show(rule); }

namespace reflect {
template <class T> inline constexpr bool is_state = std::is_same_v<std::remove_cvref_t<T>, State>;
}  // namespace reflect

// --- What is not meant, with its cure.

template <Rule R, class M, class Gradient> void update(const R&, M&&, Gradient&&) {
  static_assert(reflect::is_state<R>, "update needs state = setup(rule, model)");
}
template <class M>
  requires(!reflect::is_state<M> && Walkable<M>)
void freeze(M&, std::string_view = {}) {
  static_assert(reflect::is_state<M>,
                "freeze must not be applied to a model, only to the state from setup(rule, model)");
}
template <class M>
  requires(!reflect::is_state<M> && Walkable<M>)
void thaw(M&, std::string_view = {}) {
  static_assert(reflect::is_state<M>, "thaw must not be applied to a model, only to the state from setup(rule, model)");
}

}  // namespace rosin
