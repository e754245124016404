// The adjoint of take_along, which other ops' gradients need as well.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// Zeros of this shape, with `updates` added along `dim`: one index for each of them.
Array add_along(const Shape& shape, const Array& indices, const Array& updates, int dim);

}  // namespace rosin
