// Slopes of activations. Read first: elementwise_op.hpp.
#include "ops/slopes.hpp"

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>

#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_exponential.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

using scalar::select;

const Op& relu_slope_op =
    elementwise<2>(
        "relu_slope", "g where y > 0, else 0", [](auto g, auto y) { return select(y > 0, g, 0); }, floats)
        .with_gradient([](Backward& b) {
          b.give(0, relu_slope(b.gradient, b.in(1)));
          if (b.needs(1)) b.give(1, zeros_like(b.in(1)));
        });

const Op& sigmoid_slope_op =
    elementwise<2>(
        "sigmoid_slope", "g*y*(1 - y)", [](auto g, auto y) { return g * (y * (1 - y)); }, floats)
        .with_gradient([](Backward& b) {
          b.give(0, sigmoid_slope(b.gradient, b.in(1)));
          if (b.needs(1)) b.give(1, b.gradient * b.in(0) * (1.0 - 2.0 * b.in(1)));
        });

const Op& tanh_slope_op = elementwise<2>(
                              "tanh_slope", "g*(1 - y^2)", [](auto g, auto y) { return g * (1 - y * y); }, floats)
                              .with_gradient([](Backward& b) {
                                b.give(0, tanh_slope(b.gradient, b.in(1)));
                                if (b.needs(1)) b.give(1, b.gradient * b.in(0) * (-2.0 * b.in(1)));
                              });

/// With s = sigmoid(u), t = x*u' and u'' = t' - u': s*(1 + t*(1 - s)), and once more s*(1 - s)*(u'*(1 + t*(1 - 2*s)) +
/// t').
const Op& gelu_slope_op =
    elementwise<2>(
        "gelu_slope", "g times the derivative of gelu at x",
        [](auto g, auto x) {
          const auto squared = x * x;
          const auto s = math::sigmoid(x * (gelu_linear + gelu_cubic * squared));
          const auto t = x * (gelu_linear + 3 * gelu_cubic * squared);
          return g * (s * (1 + t * (1 - s)));
        },
        floats)
        .with_gradient([](Backward& b) {
          const Array x = b.in(1);
          b.give(0, gelu_slope(b.gradient, x));
          if (!b.needs(1)) return;
          const Array squared = square(x), s = sigmoid(x * (gelu_linear + gelu_cubic * squared));
          const Array inner = gelu_linear + 3 * gelu_cubic * squared;  // u'
          const Array bend = inner * (1.0 + x * inner * (1.0 - 2.0 * s)) + (gelu_linear + 9 * gelu_cubic * squared);
          b.give(1, b.gradient * b.in(0) * (s * (1.0 - s) * bend));
        });

}  // namespace

Array as_computed(const Array& x, DType type) {
  return is_float(x.dtype()) || is_scalar(*x.node()) ? x : cast(x, type);
}

Array relu_slope(const Array& g, const Array& y) {
  const Array by_windows = relu_slope_by_windows(g, y);
  return by_windows.is_nothing() ? record(relu_slope_op, g, y) : by_windows;
}
Array sigmoid_slope(const Array& g, const Array& y) { return record(sigmoid_slope_op, g, y); }
Array tanh_slope(const Array& g, const Array& y) { return record(tanh_slope_op, g, y); }
Array gelu_slope(const Array& g, const Array& x) { return record(gelu_slope_op, g, x); }

}  // namespace rosin
