// LeafTable: the leaves of one graph that is evaluated. Read next: evaluate.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/context.hpp"
#include "graph/leaf.hpp"

namespace rosin {

inline constexpr int donatable_bit = 25, guarded_bit = 27;

/// What a kernel must know of a leaf.
inline uint64_t leaf_word(const Node& node) {
  return static_cast<uint64_t>(node.dtype) | uint64_t{node.rank} << 8 | uint64_t{node.wide} << 16 |
         uint64_t{is_scalar(node)} << 24 | uint64_t{node.weak} << 26 |
         uint64_t{node.guards.load(std::memory_order_relaxed) != 0} << guarded_bit;
}

/// Leaves of one graph, numbered in order of first use. Those of the context are marked with its stamp and carry their
/// number; those of others, whose marks are not ours, are found by address.
class LeafTable {
 public:
  struct Leaf {
    Node* node;
    uint32_t uses;
    uint32_t slot;
  };

  void clear(const Context& context, uint32_t stamp) {
    for (const Leaf& leaf : leaves_) {
      if (leaf.slot != no_slot) slots_[leaf.slot] = {};
    }
    leaves_.clear();
    context_ = &context;
    stamp_ = stamp;
  }

  [[gnu::always_inline]] int32_t add(Node* node) {
    if (node->recorder != context_) return add_foreign(node);
    if (node->mark != stamp_) {
      node->mark = stamp_;
      node->slot = append(node, no_slot);
    } else {
      ++leaves_[node->slot].uses;
    }
    return static_cast<int32_t>(node->slot);
  }

  /// The number of a leaf that was added.
  int32_t number(const Node* node) const {
    return node->recorder == context_ ? static_cast<int32_t>(node->slot) : slots_[find(node)].number;
  }

  /// The same of any node; -1 where it is no leaf here.
  int32_t number_if_leaf(const Node* node) const {
    if (node->recorder != context_) {
      const Slot& slot = slots_[find(node)];
      return slot.node ? slot.number : -1;
    }
    const bool is_leaf = node->mark == stamp_ && node->slot < leaves_.size() && leaves_[node->slot].node == node;
    return is_leaf ? static_cast<int32_t>(node->slot) : -1;
  }

  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  static constexpr uint32_t no_slot = UINT32_MAX;

  uint32_t append(Node* node, size_t slot) {
    leaves_.push_back({node, 1, static_cast<uint32_t>(slot)});
    return static_cast<uint32_t>(leaves_.size() - 1);
  }

  int32_t add_foreign(Node* node) {
    const size_t at = find(node);
    if (!slots_[at].node) return insert(node, at);
    const int32_t number = slots_[at].number;
    ++leaves_[static_cast<size_t>(number)].uses;
    return number;
  }

  size_t find(const Node* node) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15ull >> 20 & mask;
    while (slots_[slot].node && slots_[slot].node != node) slot = (slot + 1) & mask;
    return slot;
  }

  int32_t insert(Node* node, size_t at) {
    const int32_t number = static_cast<int32_t>(append(node, at));
    slots_[at] = {node, number};
    if (leaves_.size() * 2 > slots_.size()) grow();
    return number;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, {});
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].slot == no_slot) continue;
      leaves_[i].slot = static_cast<uint32_t>(find(leaves_[i].node));
      slots_[leaves_[i].slot] = {leaves_[i].node, static_cast<int32_t>(i)};
    }
  }

  struct Slot {
    Node* node = nullptr;  // null: free
    int32_t number = 0;
  };

  const Context* context_ = nullptr;
  uint32_t stamp_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<Slot> slots_ = std::vector<Slot>(64);
};

}  // namespace rosin
