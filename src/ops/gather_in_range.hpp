// Gather for callers that have checked the indices on the host.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// x (sizes..., n), indices (shape...) in [0, n) on the device of x -> (sizes..., shape...). Unlike `gather` it never
/// waits for the device to say that an index was wrong.
Array gather_in_range(const Array& x, const Array& indices);

}  // namespace rosin
