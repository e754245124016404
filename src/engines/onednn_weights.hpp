// The blocks in which oneDNN keeps weights of convolutions, and the way between them and the logical order: on all
// threads, with the sums of partial gradients in the same pass. Read after onednn_bridge.hpp; next onednn_conv.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/dtype.hpp>

#include "engines/onednn_bridge.hpp"

namespace rosin::engines {

class WeightsOrder {
 public:
  /// `logical`: the same weights in strides; `flipped`: kernels are turned round on the way, in all dims from
  /// `spatial_from` on.
  WeightsOrder(const dnnl_memory_desc_t& packed, const dnnl_memory_desc_t& logical, bool flipped, int spatial_from);

  /// Whether the two functions may be called: not for weights that are padded, or in no blocks of many elements.
  bool is_known() const noexcept { return !inside_.empty(); }

  /// Logical weights into blocks, elements of 2 or 4 bytes.
  void pack(const void* logical, void* packed, size_t element_bytes) const;
  /// The sums of `count` arrays in blocks, which lie `distance` elements apart, in order, as logical weights of a type,
  /// to which they are rounded once.
  void sum(const float* partial, int64_t count, int64_t distance, DType type, void* logical) const;

 private:
  /// A dim as blocks are walked: how many there are, and their distances.
  struct Dim {
    int64_t count, packed_step, logical_step;
  };

  template <class Visit> void each_block(Visit visit) const;

  std::vector<Dim> dims_;        // of blocks, slowest first
  std::vector<int32_t> inside_;  // logical places of a block's elements, from its first one
  int64_t logical_begin_ = 0;    // of the first block
};

}  // namespace rosin::engines
