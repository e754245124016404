// Whether a device's library computes a recurrent layer, and what it keeps for its gradient. Read first:
// graph/hooks.hpp, library_call.hpp.
#pragma once

#include "graph/hooks.hpp"

namespace rosin {

/// See Hooks. A layer is asked for once; the answer is kept.
int64_t recurrent_reserve(const RecurrentLayer& layer);

}  // namespace rosin
