// See node_slabs.hpp.
#include "graph/node_slabs.hpp"

#include <mutex>
#include <new>
#include <utility>

#include <rosin/host_vector.hpp>

namespace rosin {
namespace {

static_assert(sizeof(NodeSlab) <= sizeof(Node) && std::has_single_bit(sizeof(Node)));

/// Slabs that no thread owns. Never destroyed: globals may outlive everything.
struct Store {
  std::mutex lock;
  NodeSlab* whole = nullptr;
  char *fresh = nullptr, *end = nullptr;  // memory of slabs that were never used
};

Store& store() {
  static Store* const store = new Store;
  return *store;
}

}  // namespace

NodeSlab* NodeSlabs::whole_slab() {
  constexpr size_t slabs_at_once = 16;
  Store& shared = store();
  const std::lock_guard lock(shared.lock);
  if (NodeSlab* const slab = shared.whole) {
    shared.whole = slab->next;
    return slab;
  }
  if (shared.fresh == shared.end) {
    auto* const memory =
        static_cast<char*>(::operator new(slabs_at_once* bytes, std::align_val_t{bytes}, std::nothrow));
    if (!memory) detail::throw_out_of_memory("record", slabs_at_once, bytes);
    shared.fresh = memory;
    shared.end = memory + slabs_at_once * bytes;
  }
  auto* const slab = new (shared.fresh) NodeSlab;
  shared.fresh += bytes;
  for (Node* node = slab->nodes() + 1; node != slab->nodes() + 64; ++node) (new (node) Node)->mark = 0;
  slab->free = NodeSlab::all;
  return slab;
}

void NodeSlabs::link(NodeSlab& slab) noexcept {
  slab.next = with_room_.next;
  slab.previous = &with_room_;
  slab.next->previous = &slab;
  with_room_.next = &slab;
}

void NodeSlabs::unlink(NodeSlab& slab) noexcept {
  slab.previous->next = slab.next;
  slab.next->previous = slab.previous;
}

void NodeSlabs::keep_whole(NodeSlab& slab) noexcept {
  if (whole_ < most_whole) {
    ++whole_;
    return;
  }
  unlink(slab);
  Store& shared = store();
  const std::lock_guard lock(shared.lock);
  slab.next = shared.whole;
  shared.whole = &slab;
}

void NodeSlabs::put_current_away() noexcept {
  NodeSlab* const slab = current_;
  current_ = nullptr;
  if (room_ != 0) add_free(*slab, std::exchange(room_, 0));
}

bool NodeSlabs::find_room() noexcept {
  NodeSlab* const slab = with_room_.next;
  if (slab == &with_room_) return false;
  unlink(*slab);
  whole_ -= slab->free == NodeSlab::all;
  current_ = slab;
  room_ = std::exchange(slab->free, 0);
  return true;
}

bool NodeSlabs::find_returned() noexcept {
  NodeSlab* slab = returned_.exchange(nullptr, std::memory_order_acquire);
  while (slab) {
    NodeSlab* const next = slab->next_returned;  // before the exchange, after which others write it
    const uint64_t bits = slab->returned.exchange(0, std::memory_order_acq_rel);
    if (slab == current_) room_ |= bits;
    else add_free(*slab, bits);
    slab = next;
  }
  return has_room() || find_room();
}

void NodeSlabs::add_slab() {
  NodeSlab* const slab = whole_slab();
  slab->owner = this;
  current_ = slab;
  room_ = std::exchange(slab->free, 0);
}

void NodeSlabs::retire() noexcept {
  put_current_away();
  whole_ = most_whole;  // none stays
  for (NodeSlab* slab = with_room_.next; slab != &with_room_;) {
    NodeSlab* const next = slab->next;
    if (slab->free == NodeSlab::all) keep_whole(*slab);
    slab = next;
  }
  whole_ = 0;
}

void NodeSlabs::give_from_elsewhere(const Node* node) noexcept {
  NodeSlab* const slab = slab_of(node);
  NodeSlabs* const owner = slab->owner;
  if (slab->returned.fetch_or(bit_of(node), std::memory_order_acq_rel) != 0) return;
  NodeSlab* first = owner->returned_.load(std::memory_order_relaxed);
  do slab->next_returned = first;
  while (!owner->returned_.compare_exchange_weak(first, slab, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace rosin
