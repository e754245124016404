// Slabs of nodes, the lists of pending nodes, and the end of nodes.
#include "graph/context.hpp"

#include <new>
#include <utility>
#include <vector>

namespace rosin {

namespace {

constexpr int64_t nodes_per_slab = 64;
constexpr int64_t free_limit = 4096;  // more free nodes than this go back to the shared store

// Free nodes of all threads, and contexts whose threads are gone. Never destroyed: globals may outlive everything.
struct Store {
  std::mutex lock;
  Node* free = nullptr;
  std::vector<Context*> retired;
  size_t contexts = 0;  // made so far: room for all of them in `retired`
};

Store& store() {
  static Store* store = new Store;
  return *store;
}

}  // namespace

thread_local Context* Context::current_ = nullptr;

// Retires the context when its thread ends.
struct ContextOwner {
  Context* context = nullptr;
  ~ContextOwner() {
    if (context) Context::retire(context);
  }
};

Context::Context() {
  pending_.next = pending_.previous = &pending_;
  kept_.next = kept_.previous = &kept_;
}

Context& Context::acquire() {
  static thread_local ContextOwner owner;
  Context* context = nullptr;
  {
    std::lock_guard lock(store().lock);
    if (!store().retired.empty()) {
      context = store().retired.back();
      store().retired.pop_back();
    } else {
      store().retired.reserve(store().contexts + 1);
      context = new Context;
      ++store().contexts;
    }
  }
  {
    std::lock_guard lock(context->orphan_lock_);
    context->owned_ = true;
  }
  current_ = context;
  owner.context = context;
  return *context;
}

void Context::retire(Context* context) noexcept {
  context->collect_orphans();
  {
    std::lock_guard lock(context->orphan_lock_);
    context->owned_ = false;
  }
  current_ = nullptr;
  std::lock_guard lock(store().lock);
  store().retired.push_back(context);
}

Node* Context::allocate() {
  if (!free_) refill();
  Node* node = free_;
  free_ = node->next;
  --free_count_;
  return node;
}

void Context::refill() {
  collect_orphans();  // a thread that records and never evaluates gets back what others dropped
  if (free_) return;
  Store& shared = store();
  std::lock_guard lock(shared.lock);
  for (int64_t i = 0; i < nodes_per_slab && shared.free; ++i) {
    Node* node = shared.free;
    shared.free = node->next;
    node->next = free_;
    free_ = node;
    ++free_count_;
  }
  if (free_) return;
  Node* slab = static_cast<Node*>(::operator new(nodes_per_slab * sizeof(Node), std::align_val_t{alignof(Node)}));
  for (int64_t i = 0; i < nodes_per_slab; ++i) {
    Node* node = new (slab + i) Node;
    node->mark = 0;
    node->next = free_;
    free_ = node;
    ++free_count_;
  }
}

void Context::free(Node* node) noexcept {
  node->next = free_;
  free_ = node;
  if (++free_count_ < free_limit) return;
  Store& shared = store();
  std::lock_guard lock(shared.lock);
  while (free_count_ > free_limit / 2) {
    Node* surplus = free_;
    free_ = surplus->next;
    surplus->next = shared.free;
    shared.free = surplus;
    --free_count_;
  }
}

void Context::list(Node* node) noexcept {
  node->context.store(this, std::memory_order_relaxed);
  node->next = &pending_;
  node->previous = pending_.previous;
  pending_.previous->next = node;
  pending_.previous = node;
  ++pending_count_;
}

void Context::unlist(Node* node) noexcept {
  node->previous->next = node->next;
  node->next->previous = node->previous;
  node->context.store(nullptr, std::memory_order_relaxed);
  if (!node->kept) --pending_count_;
}

void Context::keep(Node* node) noexcept {
  unlist(node);
  node->kept = true;
  node->context.store(this, std::memory_order_relaxed);
  node->next = &kept_;
  node->previous = kept_.previous;
  kept_.previous->next = node;
  kept_.previous = node;
}

void Context::release_kept() noexcept {
  while (kept_.next != &kept_) {
    Node* node = kept_.next;
    unlist(node);
    node->kept = false;
    add_count(node, one_reference);  // alive while its operands go
    drop_operands(node);
    drop_count(node, one_reference);
  }
}

uint32_t Context::fresh_stamp() noexcept {
  if (++stamp_ == 0) ++stamp_;
  return stamp_;
}

bool Context::give_back(Node* node) noexcept {
  std::lock_guard lock(orphan_lock_);
  if (!owned_) {
    unlist(node);
    return true;
  }
  node->hash = reinterpret_cast<uint64_t>(orphans_);
  orphans_ = node;
  has_orphans_.store(true, std::memory_order_release);
  return false;
}

namespace {

/// Drops a count; whether it was the last. The holder of the only count needs no locked instruction where nobody else
/// can make a new one. (While another thread lists the node, its evaluation may: it must find the count gone.)
bool is_last(Node* node, uint64_t which) noexcept {
  if (node->counts.load(std::memory_order_acquire) == which) {
    const Context* lists = node->context.load(std::memory_order_relaxed);
    if (!lists || lists == Context::current_or_null()) return true;
  }
  return node->counts.fetch_sub(which, std::memory_order_acq_rel) == which;
}

/// Takes a node without counts to the free nodes of this thread, or of all when this one never recorded (or has ended).
void free_node(Context* here, Node* node) noexcept {
  if (here) return here->free(node);
  std::lock_guard lock(store().lock);
  node->next = store().free;
  store().free = node;
}

/// Frees dead nodes and, without recursion, what only they held; the stack runs through `next`.
void destroy(Node* first) noexcept {
  Context* here = Context::current_or_null();
  Node* stack = nullptr;
  const auto push = [&](Node* node) {
    if (Context* lists = node->context.load(std::memory_order_relaxed)) {
      if (lists == here) lists->unlist(node);
      else if (!lists->give_back(node)) return;
    }
    node->next = stack;
    stack = node;
  };
  push(first);
  while (stack) {
    Node* node = stack;
    stack = node->next;
    for (Node* operand : node->in) {
      if (!operand) continue;
      if (is_last(operand, one_reference)) push(operand);
    }
    if (node->buffer) release(node->buffer);
    free_node(here, node);
  }
}

}  // namespace

void drop_count(Node* node, uint64_t which) noexcept {
  if (is_last(node, which)) destroy(node);
}

void drop_operands(Node* node) noexcept {
  for (Node*& in : node->in) {
    Node* operand = in;
    in = nullptr;
    if (operand) drop_count(operand, one_reference);
  }
}

void Context::collect_orphans() noexcept {
  if (!has_orphans_.load(std::memory_order_acquire)) return;
  Node* dead = nullptr;
  {
    std::lock_guard lock(orphan_lock_);
    std::swap(dead, orphans_);
    has_orphans_.store(false, std::memory_order_relaxed);
  }
  while (dead) {
    Node* node = dead;
    dead = reinterpret_cast<Node*>(node->hash);
    destroy(node);
  }
}

}  // namespace rosin
