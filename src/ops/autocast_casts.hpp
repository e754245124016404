// What ops and layers ask in an autocast scope: which operands are converted. Read first: rosin/autocast.hpp.
#pragma once

#include <rosin/array.hpp>
#include <rosin/elementwise.hpp>

#include "graph/autocast.hpp"

namespace rosin {

/// Whether an op of the Float32 family has to convert x.
inline bool widens(const Array& x) { return is_autocast() && !x.is_nothing() && is_half(x.dtype()); }
/// x as that family reads it.
inline Array widened(const Array& x) { return widens(x) ? cast(x, Float32) : x; }

/// Whether an op of the half family has to convert x.
inline bool halves(const Array& x) {
  return is_autocast() && x.dtype() != autocast_half && (x.dtype() == Float32 || is_half(x.dtype()));
}
/// x in that type: the argument of a gradient call is converted once in it.
Array cast_once(const Array& x, DType type);
/// x as that family reads it.
inline Array halved(const Array& x) { return halves(x) ? cast_once(x, autocast_half) : x; }
/// What is added to y, which does not make that wider: in a scope, in y's type.
inline Array beside(const Array& x, const Array& y) {
  return is_autocast() && is_half(y.dtype()) && x.dtype() == Float32 ? cast_once(x, y.dtype()) : x;
}

/// A gradient call forgets what it has converted.
void forget_casts() noexcept;

}  // namespace rosin
