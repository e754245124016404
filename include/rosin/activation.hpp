// Activations, by Flux's names: what layers apply element by element. softmax and logsoftmax work along a dim and stand
// elsewhere. Read first: elementwise.hpp (broadcasting, types, errors; tanh).
//
// All keep the shape and the float type; integers become Float32; NaN stays NaN. Where a derivative jumps, the side
// stated is taken. Source of the definitions: NNlib.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// x itself: the same handle.
ROSIN_API Array identity(const Array& x);
/// 1/(1 + e^-x).
ROSIN_API Array sigmoid(const Array& x);
/// (x + 3)/6, or alpha*x + beta, between 0 and 1; derivative 0 at both ends.
ROSIN_API Array hardsigmoid(const Array& x);
ROSIN_API Array hardsigmoid(const Array& x, double alpha, double beta);
/// log(sigmoid(x)), accurate at both ends.
ROSIN_API Array logsigmoid(const Array& x);
/// x between -1 and 1; derivative 0 at both ends.
ROSIN_API Array hardtanh(const Array& x);
/// x where positive, else 0; derivative 0 at 0.
ROSIN_API Array relu(const Array& x);
/// x where positive, else slope*x; derivative `slope` at 0.
ROSIN_API Array leakyrelu(const Array& x);
ROSIN_API Array leakyrelu(const Array& x, double slope);
/// x between 0 and 6; derivative 0 at both ends.
ROSIN_API Array relu6(const Array& x);
/// x where positive, else alpha*(e^x - 1).
ROSIN_API Array elu(const Array& x);
ROSIN_API Array elu(const Array& x, double alpha);
/// x times the normal distribution function at x, in the usual approximation by tanh.
ROSIN_API Array gelu(const Array& x);
/// The same in the approximation x*sigmoid(1.702*x).
ROSIN_API Array gelu_sigmoid(const Array& x);
/// The same without approximation.
ROSIN_API Array gelu_erf(const Array& x);
/// x*sigmoid(x), or x*sigmoid(beta*x).
ROSIN_API Array swish(const Array& x);
ROSIN_API Array swish(const Array& x, double beta);
/// x*hardsigmoid(x); derivative 0 at -3 and 1 at 3.
ROSIN_API Array hardswish(const Array& x);
/// x*tanh(x).
ROSIN_API Array lisht(const Array& x);
/// 1.0507009873554805 * elu(x, 1.6732632423543772), or scale * elu(x, alpha).
ROSIN_API Array selu(const Array& x);
ROSIN_API Array selu(const Array& x, double alpha, double scale);
/// x where positive, else alpha*(e^(x/alpha) - 1).
ROSIN_API Array celu(const Array& x);
ROSIN_API Array celu(const Array& x, double alpha);
/// x where above theta, else 0; derivative 0 at theta.
ROSIN_API Array trelu(const Array& x);
ROSIN_API Array trelu(const Array& x, double theta);
/// x/(1 + |x|).
ROSIN_API Array softsign(const Array& x);
/// log(1 + e^x), without overflow.
ROSIN_API Array softplus(const Array& x);
/// log(cosh(x)), without overflow.
ROSIN_API Array logcosh(const Array& x);
/// x*tanh(softplus(x)).
ROSIN_API Array mish(const Array& x);
/// x - tanh(x).
ROSIN_API Array tanhshrink(const Array& x);
/// x moved toward 0 by lambda, 0 between -lambda and lambda; derivative 0 at both.
ROSIN_API Array softshrink(const Array& x);
ROSIN_API Array softshrink(const Array& x, double lambda);

}  // namespace rosin
