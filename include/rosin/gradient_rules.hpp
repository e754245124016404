// Trading time for memory and rules of one's own: checkpoint and custom_gradient.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

namespace detail {

/// Marks what is recorded while it lives, for Checkpointed.
class ROSIN_API CheckpointRegion {
 public:
  CheckpointRegion();
  ~CheckpointRegion();
  CheckpointRegion(const CheckpointRegion&) = delete;
  CheckpointRegion& operator=(const CheckpointRegion&) = delete;

 private:
  uint32_t outer_;
};

}  // namespace detail

/// A callable (a layer, a function) whose intermediate values are not kept for the gradient but computed again there.
/// The callable itself runs once: what it recorded is recorded again, with the same random numbers, and no buffer is
/// assigned twice. A model may hold it; its fields are those of `inner`.
template <class F> struct Checkpointed {
  F inner;

  template <class... Argument> auto operator()(const Argument&... argument) const {
    const detail::CheckpointRegion region;
    return inner(argument...);
  }
};

/// checkpoint(f)(x) is f(x) with less memory in gradient calls. Source: Chen et al. 2016, arXiv 1604.06174.
template <class F> Checkpointed<F> checkpoint(F f) { return {std::move(f)}; }

namespace detail {

/// What a rule of one's own gives for the gradients by each value: those by each input, in order; nothing where there
/// is none.
using CustomRule = SmallFunction<std::vector<Array>(const std::vector<Array>& gradients)>;
ROSIN_API Array with_rule(const Array& value, std::span<const Array> inputs, CustomRule rule);
ROSIN_API std::vector<Array> with_rule(std::span<const Array> values, std::span<const Array> inputs, CustomRule rule);

}  // namespace detail

/// `value` with a gradient of one's own: in gradient calls, rule(dy) gives the gradients of the loss by `inputs` (any
/// number of arrays of which value was computed), as a vector in their order or, for one input, as one array.
/// Gradients that value has by itself are not used. Errors: argument (no input; a rule that gives another number),
/// shape (a gradient has not the shape of its input), dtype (a complex one of a real input). Example:
/// custom_gradient(round(x), {x}, [](const Array& dy) { return dy; }) is the straight-through estimator.
template <class Rule> Array custom_gradient(const Array& value, std::span<const Array> inputs, Rule rule) {
  return detail::with_rule(value, inputs, detail::CustomRule([rule](const std::vector<Array>& g) -> std::vector<Array> {
                             if constexpr (std::is_convertible_v<decltype(rule(g[0])), Array>) return {rule(g[0])};
                             else return rule(g[0]);
                           }));
}
template <class Rule> Array custom_gradient(const Array& value, std::initializer_list<Array> inputs, Rule rule) {
  return custom_gradient(value, std::span<const Array>(inputs.begin(), inputs.size()), std::move(rule));
}

/// The same of several values, which were computed of the inputs together: rule(dy) gets the gradient by each value,
/// nothing for one that the loss does not depend on, and is called once. Errors: as above; argument (no value).
///
///     std::vector<Array> both = custom_gradients({q, r}, {x}, [=](const std::vector<Array>& dy) {
///       return std::vector<Array>{solved(dy[0], dy[1])};
///     });
template <class Rule>
std::vector<Array> custom_gradients(std::span<const Array> values, std::span<const Array> inputs, Rule rule) {
  return detail::with_rule(values, inputs, detail::CustomRule(std::move(rule)));
}
template <class Rule>
std::vector<Array> custom_gradients(std::initializer_list<Array> values, std::initializer_list<Array> inputs,
                                    Rule rule) {
  return custom_gradients(std::span<const Array>(values.begin(), values.size()),
                          std::span<const Array>(inputs.begin(), inputs.size()), std::move(rule));
}

}  // namespace rosin
