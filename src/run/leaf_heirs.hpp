// LeafHeirs: which results of one graph take the place of which leaves, see Context::heirs. Read next: evaluate.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/context.hpp"
#include "plan/structure.hpp"
#include "run/leaf_table.hpp"

namespace rosin {

class LeafHeirs {
 public:
  /// Of the nodes that are evaluated, which carry their numbers, and their leaves. None on the CPU: what can fail there
  /// has run before a leaf is overwritten.
  void find(int device, const Context& context, std::span<Node* const> nodes, const LeafTable& leaves) {
    heirs_.clear();
    if (device == 0) return;
    for (const Context::Heir& heir : context.heirs) {
      const bool is_made_here = heir.node->slot < nodes.size() && nodes[heir.node->slot] == heir.node;
      const int32_t leaf = is_made_here ? leaves.number_if_leaf(heir.of) : -1;
      if (leaf >= 0) heirs_.push_back({static_cast<int32_t>(heir.node->slot), leaf});
    }
  }
  /// f(word) for each, as a part of a key.
  template <class F> void each_word(F&& f) const {
    for (const Heir& heir : heirs_) f(static_cast<uint64_t>(heir.node) << 32 | static_cast<uint64_t>(heir.leaf));
  }
  void mark(plan::Graph& graph) const {
    for (const Heir& heir : heirs_) graph.values[static_cast<size_t>(graph.nodes + heir.leaf)].heir = heir.node;
  }

 private:
  struct Heir {
    int32_t node, leaf;
  };

  std::vector<Heir> heirs_;
};

}  // namespace rosin
