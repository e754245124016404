// NodeSlabs: the nodes of one recording thread. They stand in slabs of 63 and are given out in the order of their
// addresses, however they were freed: who goes over nodes in recording order, as each evaluation does some times, then
// goes through memory in order too. (In a list of free nodes the order is lost within a few steps; graphs larger than
// the second cache then took about twice as long.) Read next: context.hpp, which owns them.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "graph/node.hpp"

namespace rosin {

class NodeSlabs;

/// Stands in the place of a slab's first node. Bit i is the i-th node.
struct NodeSlab {
  NodeSlabs* owner = nullptr;
  uint64_t free = 0;                  // the owner's thread alone, and not of the slab that it takes nodes from
  std::atomic<uint64_t> returned{0};  // freed by other threads
  NodeSlab* next_returned = nullptr;
  NodeSlab* next = nullptr;  // of the list that it is in
  NodeSlab* previous = nullptr;

  static constexpr uint64_t all = ~uint64_t{1};
  Node* nodes() noexcept { return reinterpret_cast<Node*>(this); }
};

/// Only the owning thread calls what is not static.
class NodeSlabs {
 public:
  NodeSlabs() noexcept { with_room_.next = with_room_.previous = &with_room_; }
  NodeSlabs(const NodeSlabs&) = delete;
  NodeSlabs& operator=(const NodeSlabs&) = delete;

  /// Whether take() has a node to give.
  bool has_room() const noexcept { return room_ != 0; }
  Node* take() noexcept {
    Node* const node = current_->nodes() + std::countr_zero(room_);
    room_ &= room_ - 1;
    return node;
  }
  /// Takes a node back, whoever owns it.
  void give(const Node* node) noexcept {
    NodeSlab* const slab = slab_of(node);
    if (slab == current_) room_ |= bit_of(node);
    else if (slab->owner == this) add_free(*slab, bit_of(node));
    else give_from_elsewhere(node);
  }
  /// Makes room from slabs that have free nodes; false where there are none.
  bool find_room() noexcept;
  /// The same from nodes that other threads have freed.
  bool find_returned() noexcept;
  /// The same from slabs of the process, or fresh ones. Error (memory).
  void add_slab();
  /// The thread ends: whole slabs go to all threads, the others wait for the next owner.
  void retire() noexcept;

  /// Of any thread: gives a node back to whoever owns it.
  static void give_from_elsewhere(const Node* node) noexcept;

 private:
  static constexpr size_t bytes = 64 * sizeof(Node);
  static constexpr int64_t most_whole = 64;  // slabs without a node in use that stay; more go to all threads

  static NodeSlab* slab_of(const Node* node) noexcept {
    return reinterpret_cast<NodeSlab*>(reinterpret_cast<uintptr_t>(node) & ~uintptr_t{bytes - 1});
  }
  static uint64_t bit_of(const Node* node) noexcept {
    return uint64_t{1} << (reinterpret_cast<uintptr_t>(node) & (bytes - 1)) / sizeof(Node);
  }
  static NodeSlab* whole_slab();

  void add_free(NodeSlab& slab, uint64_t bits) noexcept {
    if (slab.free == 0) link(slab);
    slab.free |= bits;
    if (slab.free == NodeSlab::all) keep_whole(slab);
  }
  void link(NodeSlab& slab) noexcept;
  static void unlink(NodeSlab& slab) noexcept;
  void keep_whole(NodeSlab& slab) noexcept;
  void put_current_away() noexcept;

  NodeSlab* current_ = nullptr;
  uint64_t room_ = 0;   // free nodes of the current slab
  NodeSlab with_room_;  // sentinel of a circular list: slabs with free nodes, but for the current one
  int64_t whole_ = 0;   // slabs in the list without a node in use
  std::atomic<NodeSlab*> returned_{nullptr};
};

}  // namespace rosin
