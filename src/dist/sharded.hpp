// Steps that ranks share out among them: gradients go to the owners. Read next: sharded.cpp, optim/shares.hpp.
#pragma once

#include <span>
#include <vector>

#include "dist/group.hpp"

namespace rosin::distributed {

/// The sums of `given`, arrays in one place, over all ranks: this rank's own, nothing in the place of the others.
std::vector<Array> sums_at_owners(Group& group, std::span<const rosin::detail::NamedGradient> gradients,
                                  const std::vector<Array>& given);

}  // namespace rosin::distributed
