// What an evaluation computes on the way to an array whose handle goes then, such as the sum in sum(exp(x) + 1).item().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/node.hpp"

namespace rosin {

/// An evaluation for the last use of `target`.
struct LastUse {
  std::span<Node* const> order;  // all nodes that it computes, of one context, oldest first
  const Node* target = nullptr;
  uint64_t evaluated = 0;  // the sequence number up to which an evaluation came before
};

/// Clears held[n] of nodes that the target needs and a single handle holds, most likely a temporary of the same
/// expression: such as cost no call, and were recorded, with all that they need, since the last evaluation. A handle
/// that stays has its node computed once more when it is read, so that nothing is computed more than twice. Whether
/// there are any; uses slots.
bool leave_out_passing(const LastUse& use, std::vector<uint8_t>& held);

}  // namespace rosin
