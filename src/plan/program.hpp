// Emitter: writes the instructions of one kernel from the members of its unit.
#pragma once

#include <map>
#include <tuple>

#include "plan/fuse.hpp"

namespace rosin::plan {

/// The kernel of a unit, whose members belong to unit `number` of the fuser: of a call what stands behind its product.
/// `stored[v]`: value v is read outside its kernel.
Kernel emit(const Structure& structure, const Fuser& fuser, int32_t number, const Unit& unit,
            const std::vector<char>& stored);

}  // namespace rosin::plan
