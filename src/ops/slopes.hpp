// The slopes of activations times the gradient, each one node: every training step records some of them.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// g where y is positive, else 0: relu, whose value is y.
Array relu_slope(const Array& g, const Array& y);
/// g*y*(1 - y): sigmoid, whose value is y.
Array sigmoid_slope(const Array& g, const Array& y);
/// g*(1 - y^2): tanh, whose value is y.
Array tanh_slope(const Array& g, const Array& y);

}  // namespace rosin
