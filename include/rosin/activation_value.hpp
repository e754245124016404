// Activation: what a layer applies to its result, as a value: a function of the library, or any callable.
// Read first: activation.hpp (the functions). Read next: layer.hpp.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <rosin/array.hpp>
#include <rosin/small_function.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// The form of the library's functions of one array.
using UnaryFunction = Array (*)(const Array& x);

/// Name as Flux prints it ("relu", "σ", "softmax"), or "function" for one that is not of the library.
ROSIN_API std::string_view function_name(UnaryFunction function) noexcept;

/// A function from Array to Array; the identity by default. A lambda may have captures; it prints as `lambda`.
class ROSIN_API Activation {
 public:
  static constexpr bool rosin_leaf = true;

  Activation() noexcept = default;
  Activation(UnaryFunction function) noexcept;
  template <class F>
    requires(!std::same_as<F, Activation> && std::is_invocable_r_v<Array, const F&, const Array&>)
  Activation(F callable) : callable_(std::move(callable)), name_(reflect::type_name<F>) {}

  Array operator()(const Array& x) const {
    if (function_) return function_(x);
    return callable_.is_empty() ? x : callable_(x);
  }
  /// The function of arrays that it is; null where it is the identity or another callable.
  UnaryFunction function() const noexcept { return function_; }
  bool is_identity() const noexcept { return !function_ && callable_.is_empty(); }
  std::string_view name() const noexcept { return name_; }
  std::string rosin_show() const { return std::string(name_); }

 private:
  UnaryFunction function_ = nullptr;
  SmallFunction<Array(const Array&)> callable_;
  std::string_view name_ = "identity";
};

}  // namespace rosin
