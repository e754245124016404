// Ops that optimiser rules are made of: running moments of gradients, and the step they give. Each is one node, so that
// the update of a parameter records few of them.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// weight*old + rest*now; `rest` is 1 - weight, computed in double by the caller.
Array running_mean(const Array& old, const Array& now, const Array& weight, const Array& rest);
/// weight*old + rest*now^2.
Array running_square(const Array& old, const Array& now, const Array& weight, const Array& rest);
/// scale*mean/(sqrt(square) + epsilon).
Array scaled_by_root(const Array& mean, const Array& square, const Array& scale, const Array& epsilon);
/// x less that; scale and epsilon are C++ numbers.
Array moved_by_root(const Array& x, const Array& mean, const Array& square, const Array& scale, const Array& epsilon);

}  // namespace rosin
