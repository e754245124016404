// A copy of one array's values.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// An array with memory of its own and the values of x, evaluated; nothing stays nothing.
Array cloned(const Array& x);

}  // namespace rosin
