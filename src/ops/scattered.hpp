// What scatters share: checks and recording. Read next: index.cpp, scatter_reduce.cpp.
#pragma once

#include "ops/shapes.hpp"

namespace rosin {

/// Error (dtype): a Bool target.
void require_numbers(const Op& op, const Array& target);
/// Records a scatter of whole slices. Errors (dtype, shape).
Array scattered(const Op& op, const Array& target, const Array& indices, const Array& updates, int dim);

}  // namespace rosin
