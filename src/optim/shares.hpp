// Leaves of a state that processes have shared out among them. Read next: tree.hpp, dist/sharded.cpp.
#pragma once

#include "optim/tree.hpp"

namespace rosin {

/// As the leaves' rule wants it: an owner for each, or none.
void assign_owners(StateTree& tree);
/// Whether another process keeps the state of this leaf and makes its steps.
bool is_elsewhere(const StateLeaf& leaf);
/// Null: every process makes the steps of all leaves.
detail::Sharing* sharing_of(const StateTree& tree);
/// The rule begins anew for this parameter.
void begin(StateLeaf& leaf, const Array& x);

}  // namespace rosin
