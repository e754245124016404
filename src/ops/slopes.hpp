// What gradient rules share: the slopes of activations times the gradient, each one node, since every training step
// records some of them; and operands as the op computes them.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// g where y is positive, else 0: relu, whose value is y.
Array relu_slope(const Array& g, const Array& y);
/// g*y*(1 - y): sigmoid, whose value is y.
Array sigmoid_slope(const Array& g, const Array& y);
/// g*(1 - y^2): tanh, whose value is y.
Array tanh_slope(const Array& g, const Array& y);

/// The derivative of gelu at x, times g.
Array gelu_slope(const Array& g, const Array& x);

/// gelu(x) is x*sigmoid(x*(gelu_linear + gelu_cubic*x^2)), which is x*(1 + tanh(u))/2 with u half of that.
inline constexpr double gelu_linear = 2 * 0.7978845608028654;  // 2*sqrt(2/pi)
inline constexpr double gelu_cubic = gelu_linear * 0.044715;

/// An operand of an op whose result is of the float type `type`: an array of integers converted, all else as it is.
Array as_computed(const Array& x, DType type);

}  // namespace rosin
