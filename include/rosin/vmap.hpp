// vmap: a function of one observation, applied to all of them at once. Read first: grad.hpp, derivatives.hpp.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

namespace detail {

/// One call of vmap, for the template below: what f gets, and what it gave with the mapped dim.
class ROSIN_API VmapCall {
 public:
  VmapCall();
  ~VmapCall();
  VmapCall(const VmapCall&) = delete;
  VmapCall& operator=(const VmapCall&) = delete;

  /// One observation of x (..., n), which has no value.
  Array open(const Array& x);
  /// y, made of these, for all observations: (..., n).
  Array mapped(const Array& y);
  std::vector<Array> mapped(const std::vector<Array>& y);
  template <class... T> std::tuple<T...> mapped(const std::tuple<T...>& y) {
    const std::vector<Array> all = std::apply([&](const T&... part) { return mapped(std::vector<Array>{part...}); }, y);
    size_t at = 0;
    const auto next = [&](const Array&) { return all[at++]; };
    return std::apply([&](const T&... part) { return std::tuple<T...>{next(part)...}; }, y);
  }
  template <class A, class B> std::pair<A, B> mapped(const std::pair<A, B>& y) {
    const std::vector<Array> all = mapped(std::vector<Array>{y.first, y.second});
    return {all[0], all[1]};
  }

 private:
  struct State;
  State* state_;
};

}  // namespace detail

/// f applied to each slice along the last dim of all x, which have one size there; the results side by side along a new
/// last dim, also of arrays in a tuple, pair or vector. f is called once, with arrays without that dim, and what it
/// records is recorded anew with the dim: nothing runs in a loop but scatters by mapped indices and the like. Captured
/// arrays are the same for all. Random draws inside are the same for all, too; running statistics are not moved.
/// Gradient calls, jvp and vmap may stand inside f and around it: vmap([&](const Array& x, const Array& y) { return
/// gradient(loss, model, x, y); }) gives the gradients of each observation, for loss functions of arrays.
/// Errors: shape (no last dim, or other sizes), argument (f looks at values; it has a custom_gradient and a gradient
/// call stands around; 20000 ops), whatever f throws. Source: jax.vmap.
template <class F, class... X>
  requires(sizeof...(X) > 0 && (std::is_same_v<X, Array> && ...))
auto vmap(F&& f, const X&... x) {
  detail::VmapCall call;
  const std::tuple<X...> one{call.open(x)...};
  return call.mapped(std::apply(f, one));
}

}  // namespace rosin
