// Random numbers as values of fused kernels. Read first: base/philox.hpp, code.hpp.
#pragma once

#include "kernels/code.hpp"

namespace rosin::kernels {

/// The number in [0, 1) at place `element` of the draw of `key` (Int64) from block `counter` (Int64) on; Float32 or
/// Float64.
Term drawn_element(ScalarType type, Term key, Term counter, Term element);

}  // namespace rosin::kernels
