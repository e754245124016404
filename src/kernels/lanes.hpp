// What neighbouring items of a group combine: by trees in shared memory, or by exchange within warps where the device
// has that. Read first: launches.hpp. Read next: fused.cpp.
#pragma once

#include "graph/reducer.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Bool travels as Int32 in shared memory and scratch.
inline ScalarType shared_type(ScalarType type) { return type == ScalarType::boolean ? ScalarType::int32 : type; }

class Combiner {
 public:
  Combiner(KernelWriter& writer, const Abilities& device) : w_(writer), warp_(device.warp) {}

  /// What `lanes` neighbouring items (a power of two) have, combined in a fixed tree: the same one on every device.
  /// Every one of them gets it. All items of the group call it; `lanes` is the same for all.
  Term combine(const Reducer& reducer, Term value, Term lane, Term lanes);

 private:
  Term in_shared_memory(const Reducer& reducer, Term value, Term lane, Term lanes);
  Term in_warps(const Reducer& reducer, Term value, Term lane, Term lanes);
  Term across_warps(const Reducer& reducer, Term value, Term lane, Term lanes);
  int array_of(ScalarType type);

  KernelWriter& w_;
  int warp_;
  int arrays_[scalar_type_count] = {-1, -1, -1, -1, -1, -1, -1};  // of shared memory, one a type
};

}  // namespace rosin::kernels
