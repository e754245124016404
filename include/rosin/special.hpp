// Special functions beside those of elementwise.hpp (erf, lgamma, digamma, trigamma), which is to be read first.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// The inverse of erf: erf(erfinv(x)) = x. -Inf and Inf at -1 and 1, NaN outside; integers give Float32. The gradient
/// is sqrt(pi)/2 * exp(erfinv(x)^2). sqrt(2) * erfinv(2p - 1) is the standard normal number with p below it.
/// Sources: Giles, Approximating the erfinv function (Float32); Wichura, Algorithm AS 241 (Float64).
ROSIN_API Array erfinv(const Array& x);

}  // namespace rosin
