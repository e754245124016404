// stop_gradient of rosin/grad.hpp, for rooms that know nothing of gradient calls.
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// x as a constant: no gradient flows through the result.
ROSIN_API Array stop_gradient(const Array& x);

}  // namespace rosin
