// PackedLeaves: the leaves of one run of which other forms may be read, see graph/packed_forms.hpp. Read next:
// evaluate.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/packed_forms.hpp"
#include "plan/device.hpp"
#include "run/leaf_table.hpp"

namespace rosin {

class PackedLeaves {
 public:
  /// Of those that the layout asks for: their memory, or null where no run has read it since it was written, or where a
  /// user may write it.
  void find(const plan::Prepared& prepared, const LeafTable& leaves, size_t nodes) {
    memory_.clear();
    for (const int32_t value : prepared.packed()) {
      Memory* const memory = leaves.leaves()[static_cast<size_t>(value) - nodes].node->buffer;
      const bool is_known =
          memory->operations != &lent_memory && memory->reading.load(std::memory_order_acquire) != Reading::none;
      if (!is_known) memory->reading.store(Reading::once, std::memory_order_release);
      memory_.push_back(is_known ? memory : nullptr);
    }
  }
  Memory* const* memory() const { return memory_.data(); }

 private:
  std::vector<Memory*> memory_;
};

}  // namespace rosin
