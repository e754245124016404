// Evaluation in two parts: one run of nodes of one thread's context (evaluate.cpp), and which runs there are, in which
// order, and what becomes of nodes that cannot be computed (evaluate_order.cpp).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {

/// See Hooks. A small plan at the end of a step may run behind the thread that recorded it (cpu_stream.hpp).
void evaluate(Context& here, Node* target, Moment moment);

/// What one run computes: all pending nodes of the context that a handle holds, or some of them alone.
struct Wanted {
  Context& context;
  Node* target = nullptr;             // of this context; computed even where no handle holds it
  std::span<const Array> alone = {};  // nodes of the context: these, and what they need; nothing is overwritten then
  bool may_be_behind = false;         // may return before it is computed
  bool last_use = false;              // of the target: what else its expression holds probably goes too
};

/// Whether a handle wants the value in memory of its own; `asked`: the node is evaluated for itself.
inline bool comes_out(const Node& node, bool asked) {
  return (asked || node.users() > 0) && node.op->results == 1 && (asked || !is_look_at_file(node));
}
inline bool is_among(std::span<const Array> list, const Node& node) {
  return std::any_of(list.begin(), list.end(), [&](const Array& x) { return x.node() == &node; });
}

/// False when more is to be done: nodes of other threads come first (`missing`), or some of another device are left.
/// Holds the lock of the one context only. What `here`, the caller's, has of the nodes leaves the pending list.
bool run_once(const Wanted& wanted, Context& here, std::vector<Array>& missing);

}  // namespace rosin
