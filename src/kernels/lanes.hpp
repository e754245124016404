// What neighbouring items of a group combine: by trees in shared memory, or by exchange within warps where the device
// has that. Read first: launches.hpp. Read next: fused.cpp.
#pragma once

#include <span>
#include <vector>

#include "graph/reducer.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Bool travels as Int32 in shared memory and scratch.
inline ScalarType shared_type(ScalarType type) { return type == ScalarType::boolean ? ScalarType::int32 : type; }

/// What an item has of one result, and how that is combined with what others have.
struct Partial {
  const Reducer* reducer;
  Term value;
};

class Combiner {
 public:
  Combiner(KernelWriter& writer, const Abilities& device) : w_(writer), warp_(device.warp) {}

  /// What `lanes` neighbouring items (a power of two) have, combined in a fixed tree: the same one on every device.
  /// Every one of them gets it. All items of the group call it; `lanes` is the same for all.
  Term combine(const Reducer& reducer, Term value, Term lane, Term lanes);
  /// The same of several results: items wait for each other once for all of them, but each takes shared memory.
  std::vector<Term> combine(std::span<const Partial> partials, Term lane, Term lanes);
  /// From here on what warps exchange stands in other shared memory at each call, where nobody reads any more: in a
  /// loop a barrier must stand between one call and its next turn.
  void use_own_arrays() { own_arrays_ = true; }

 private:
  Term in_shared_memory(const Reducer& reducer, Term value, Term lane, Term lanes);
  std::vector<Term> in_warps(std::span<const Partial> partials, Term lane, Term lanes);
  std::vector<Term> across_warps(std::span<const Partial> partials, Term lane, Term lanes);
  std::vector<int> arrays_of(std::span<const Partial> partials);
  int array_of(ScalarType type, size_t number = 0);

  KernelWriter& w_;
  int warp_;
  bool own_arrays_ = false;
  std::vector<int> arrays_[scalar_type_count];  // of shared memory, of each type
};

}  // namespace rosin::kernels
