// Derivatives of trigamma, made of other ops: gradients of gradients of lgamma need them.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// The derivative of order `order` (at least 2) of digamma. x: any shape, floating. At 0, -1, -2, ... it is infinite or
/// NaN. Its gradient is that of what it is made of, of any order. Source: Abramowitz and Stegun 6.4.
Array polygamma(int order, const Array& x);

}  // namespace rosin
