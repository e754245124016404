// Emitter: writes the instructions of one kernel from the members of its unit.
#pragma once

#include <map>
#include <tuple>

#include "lower/fuse.hpp"

namespace rosin::lower {

/// The kernel of a unit. `stored[v]`: value v is read outside its kernel.
Kernel emit(const Structure& structure, const Fuser& fuser, int32_t unit, const std::vector<char>& stored);

}  // namespace rosin::lower
