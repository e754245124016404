// Gradients: withgradient and gradient walk back over what a function recorded. Read next: optim.hpp (taking steps).
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/error.hpp>
#include <rosin/known_parts.hpp>
#include <rosin/model.hpp>
#include <rosin/walk.hpp>

namespace rosin {

namespace detail {

/// One gradient call: for the templates below. The arguments' trainable arrays become fresh argument nodes, the
/// function is run, then close() walks back from its loss.
class ROSIN_API GradientCall {
 public:
  GradientCall();
  /// Ends the call; buffers assigned inside keep their old values unless write_buffers was called.
  ~GradientCall();
  GradientCall(const GradientCall&) = delete;
  GradientCall& operator=(const GradientCall&) = delete;

  /// Makes the trainable arrays of a copy of one argument what the loss is differentiated by.
  void open(ModelEdit copy);
  /// What the function gives; an error that passes gets the path of the layer in which it arose.
  template <class F> auto located(F&& f) {
    try {
      return f();
    } catch (Error& error) {
      locate(error);
      throw;
    }
  }
  /// Walks back from the loss. Error (shape) when it has more than one element, (dtype) when it is no float, (argument)
  /// when another thread has computed part of it.
  void close(const Array& loss);
  /// Replaces every array of `result` (a copy of the i-th argument) by its gradient, or nothing.
  void write_gradient(size_t argument, ModelEdit result);
  /// Writes what was assigned to buffers and drawn from generators inside the call into the i-th model.
  void write_buffers(size_t argument, ModelEdit model);

 private:
  void locate(Error& error) const;
  struct State;
  State* state_;
};

}  // namespace detail

/// Whether a gradient call is in progress on this thread (layers train then, unless a mode says otherwise).
ROSIN_API bool in_gradient() noexcept;

/// x as a constant: no gradient flows through the result.
ROSIN_API Array stop_gradient(const Array& x);

/// Value and gradient of a function; the gradient of a model has the model's own type.
template <class Value, class Gradient> struct WithGradient {
  Value value;
  Gradient gradient;
};

namespace reflect {

template <class T> using ArgumentOf = std::conditional_t<Number<std::remove_cvref_t<T>>, Array, std::remove_cvref_t<T>>;

/// What f gets: a model or array as it is, a number as a weak float.
template <class T> ArgumentOf<T> argument_of(const T& x) {
  if constexpr (Number<T>) return Array(static_cast<double>(x));
  else return copy_of(x);
}

/// The scalar that is differentiated: the result itself, or the first entry of a tuple or pair.
template <class Value> Array loss_of(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, Array>) return value;
  else return std::get<0>(value);
}

template <class Value>
concept GivesLoss = std::is_convertible_v<const Value&, Array> || requires(const Value& value) {
  { std::get<0>(value) } -> std::convertible_to<Array>;
};

/// Says what a function is not, that was given to `gradient` and cannot be differentiated.
template <class F, class... Argument> consteval bool check_function() {
  static_assert(
      std::is_invocable_v<F&, const ArgumentOf<Argument>&...>,
      "rosin: the function given to gradient must take as many arguments as gradient is given behind it, each "
      "as a constant: const Model& or const auto&");
  if constexpr (std::is_invocable_v<F&, const ArgumentOf<Argument>&...>) {
    using Value = std::invoke_result_t<F&, const ArgumentOf<Argument>&...>;
    static_assert(!std::is_void_v<Value>, "rosin: the function given to gradient must return the loss");
    if constexpr (!std::is_void_v<Value>) {
      static_assert(GivesLoss<std::remove_cvref_t<Value>>,
                    "rosin: the function given to gradient must return an Array, or a tuple that begins with one");
    }
  }
  return true;
}

template <class F, class... Argument, size_t... i>
auto withgradient_of(F& f, std::index_sequence<i...>, Argument&... argument) {
  static_assert((check_parts<ArgumentOf<Argument>>() && ...));
  static_assert(check_function<F, Argument...>());
  detail::GradientCall call;
  std::tuple<ArgumentOf<Argument>...> copies{argument_of(argument)...};
  (call.open(std::get<i>(copies)), ...);
  auto value = call.located([&] { return f(static_cast<const ArgumentOf<Argument>&>(std::get<i>(copies))...); });
  call.close(loss_of(value));
  std::tuple<ArgumentOf<Argument>...> gradients{copy_parts(std::get<i>(copies))...};
  (call.write_gradient(i, std::get<i>(gradients)), ...);
  const auto write = [&]<class A>(size_t at, A& model) {
    if constexpr (!std::is_const_v<A> && Walkable<A>) call.write_buffers(at, ModelEdit(model));
  };
  (write(i, argument), ...);
  if constexpr (sizeof...(Argument) == 1) {
    return WithGradient<decltype(value), ArgumentOf<Argument>...>{std::move(value), std::move(std::get<0>(gradients))};
  } else {
    return WithGradient<decltype(value), decltype(gradients)>{std::move(value), std::move(gradients)};
  }
}

}  // namespace reflect

/// Value of f at the arguments and the gradient by each: one argument gives its gradient, several a tuple. Arguments
/// are models, arrays, numbers, tuples. If f gives a tuple, its first entry is differentiated and the whole is the
/// value. Places without gradient hold nothing; tied places hold one gradient, which is tied. Buffers assigned inside,
/// and generators drawn from, are moved on in arguments that are not const; the update that follows takes that back
/// where it fails. Errors: shape (the loss has more than one element), dtype (it is no float), argument (another thread
/// has computed part of it from the arguments), and whatever f throws.
template <class F, class... Argument> auto withgradient(F&& f, Argument&&... argument) {
  static_assert(sizeof...(Argument) > 0, "rosin: withgradient(f, model) needs something to differentiate by");
  return reflect::withgradient_of(f, std::index_sequence_for<Argument...>(), argument...);
}

/// The gradient alone: gradient([](auto x, auto y) { return x * y; }, 2, 3) is (3, 2).
template <class F, class... Argument> auto gradient(F&& f, Argument&&... argument) {
  return withgradient(f, std::forward<Argument>(argument)...).gradient;
}

}  // namespace rosin
