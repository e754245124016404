// Slices that lie in one piece of memory that is there: they become looks at it, so that nothing is copied, and a plan
// of what reads them serves every offset.
#pragma once

#include "graph/op.hpp"

namespace rosin {

/// Whether the node, which is pending, has its value now: it is a range of the last dim of an evaluated array of the
/// CPU (not of borrowed memory), maybe in another shape, and handles hold both. (The whole is kept anyway; what no
/// handle holds is read where it is by the plan's kernels, for which weights stay packed.)
bool slice_has_become_part(Node& node);
bool reshaped_slice_has_become_part(Node& node);
inline bool has_become_part(Node& node) {
  const Movement movement = node.op->movement;
  if (movement == Movement::none || node.users() == 0) return false;
  if (movement == Movement::reshape) return reshaped_slice_has_become_part(node);
  return movement == Movement::slice && slice_has_become_part(node);
}

}  // namespace rosin
