// Store little (D13): an elementwise value that one kernel computes and others read is computed again by these from
// what is in memory anyway, where that moves fewer bytes. Read first: fuse.hpp. Read next: recompute.cpp.
#pragma once

#include <vector>

#include "plan/fuse.hpp"

namespace rosin::plan {

/// Fills Unit::again. `work`: primitives that a kernel may compute once more for one value.
void choose_recomputed(const Structure& structure, Fuser& fuser, int work);

/// Calls f(operand) for what member `value` of a unit reads, as its kernel or call sees it: broadcasts and identities
/// left out. C++ numbers of the node are passed over.
template <class F> void each_read(const Structure& structure, const Fuser& fuser, int32_t value, F&& f) {
  const Value& reader = structure.graph.values[static_cast<size_t>(value)];
  const bool elementwise = reader.op && reader.op->kind == Kind::elementwise;
  for (int i = 0; i < reader.operands; ++i) {
    if (reader.in[i] < 0) continue;
    f(elementwise ? fuser.without_broadcast(reader.in[i]) : fuser.plain(reader.in[i]));
  }
}

/// The value whose memory a held node gets: itself, what it looks at, or its contiguous copy.
int32_t held_storage(const Structure& structure, const Fuser& fuser, int32_t node);

}  // namespace rosin::plan
