// Derivatives of functions whose result has many elements, and second ones. All are made of gradient calls, nest like
// these, and take what has a gradient (a second one for jvp, hvp and Hessians). Read first: grad.hpp.
#pragma once

#include <array>
#include <concepts>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/export.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

/// A function from Array to Array: any callable, with a copy of what it captures by value.
class ArrayFunction {
 public:
  template <class F>
    requires(!std::same_as<F, ArrayFunction> && std::is_invocable_r_v<Array, const F&, const Array&>)
  ArrayFunction(F callable) : call_(std::move(callable)) {}

  Array operator()(const Array& x) const { return call_(x); }

 private:
  SmallFunction<Array(const Array&)> call_;
};

/// A function's value, and what multiplies a cotangent with its Jacobian. Source: Zygote.pullback.
template <class F, class... Argument> class Pullback {
 public:
  Pullback(F f, Argument... argument)
      : value(f(std::as_const(argument)...)), f_(std::move(f)), at_(std::move(argument)...) {}

  Array value;

  /// Of a cotangent of the value's shape: the gradient of sum(cotangent * f(...)) by each argument, as `gradient` gives
  /// it. Calls f again.
  auto operator()(const Array& cotangent) const {
    return std::apply(
        [&](const Argument&... argument) {
          return gradient([&](const Argument&... a) { return sum(f_(a...) * cotangent); }, argument...);
        },
        at_);
  }

 private:
  F f_;
  std::tuple<Argument...> at_;
};
/// auto back = pullback(f, model, x); back.value; auto [by_model, by_x] = back(cotangent).
template <class F, class... Argument> auto pullback(F f, const Argument&... argument) {
  return Pullback<F, reflect::ArgumentOf<Argument>...>(std::move(f), reflect::argument_of(argument)...);
}

/// A function's value at x, and its Jacobian times a vector.
struct Tangent {
  Array value;
  Array tangent;  // of the value's shape
};
/// f(x) and the derivative of f at x in the direction v, which has the shape of x (Error (shape)). By two gradients:
/// that of the product with a cotangent is linear in the cotangent. Complex numbers are taken as pairs of real ones,
/// also by hvp. Source: jax.jvp.
ROSIN_API Tangent jvp(const ArrayFunction& f, const Array& x, const Array& v);

/// (elements of f(x), elements of x): row i is the gradient of element i, both in column-major order. All
/// rows are computed at once, or all columns where there are fewer, with f under vmap; one by one where f looks at
/// values, has a custom_gradient or records too much for that. Source: Zygote.jacobian, jax.jacobian.
ROSIN_API Array jacobian(const ArrayFunction& f, const Array& x);

namespace detail {

/// For `op`: the elements of all arrays, one after another. Error (dtype): they have several types.
ROSIN_API Array joined(const char* op, std::span<const Array> arrays);
/// The arrays like these that such a vector stands for.
ROSIN_API std::vector<Array> parted(const Array& vector, std::span<const Array> like);
/// Error (shape): the directions are not those of the arrays.
ROSIN_API void check_directions(std::span<const Array> arrays, std::span<const Array> directions);

/// f of several arrays as a function of one vector.
template <class F, size_t n> ArrayFunction of_vector(const F& f, const std::array<Array, n>& x) {
  return [f, x](const Array& vector) -> Array {
    const std::vector<Array> parts = parted(vector, x);
    return [&]<size_t... i>(std::index_sequence<i...>) { return f(parts[i]...); }(std::make_index_sequence<n>());
  };
}

}  // namespace detail

/// The same of a function of several arrays of one type: jvp(f, std::tuple{x, y}, std::tuple{by_x, by_y}).
template <class F, class... X>
  requires(std::same_as<X, Array> && ...)
Tangent jvp(const F& f, const std::tuple<X...>& x, const std::tuple<X...>& v) {
  const auto list = [](const X&... all) { return std::array<Array, sizeof...(X)>{all...}; };
  const auto at = std::apply(list, x), along = std::apply(list, v);
  detail::check_directions(at, along);
  return jvp(detail::of_vector(f, at), detail::joined("jvp", at), detail::joined("jvp", along));
}
/// Of several arrays of one type: a Jacobian by each, auto [by_x, by_y] = jacobian(f, x, y). Source: Zygote.jacobian.
template <class F, class... X>
  requires(sizeof...(X) > 1 && (std::same_as<X, Array> && ...))
std::tuple<X...> jacobian(const F& f, const X&... x) {
  const std::array<Array, sizeof...(X)> at{x...};
  const Array all = jacobian(detail::of_vector(f, at), detail::joined("jacobian", at));
  int64_t first = 0;
  const auto columns_of = [&](const Array& part) {
    const int64_t begin = std::exchange(first, first + part.count());
    return slice(all, 1, begin, first);
  };
  return std::tuple<X...>{columns_of(x)...};
}

/// The matrix of second derivatives (n, n) of a function whose result has one element; all rows at once, as of a
/// Jacobian. Error (dtype): x is complex. Source: Zygote.hessian.
ROSIN_API Array hessian(const ArrayFunction& f, const Array& x);
/// Its diagonal in the shape of x, without the rest. Source: Zygote.diaghessian.
ROSIN_API Array diaghessian(const ArrayFunction& f, const Array& x);
/// The Hessian times v, both of the shape of x, without the Hessian. Error (shape).
ROSIN_API Array hvp(const ArrayFunction& f, const Array& x, const Array& v);

}  // namespace rosin
