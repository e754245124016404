// The lists of pending nodes, and the end of nodes.
#include "graph/context.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <rosin/free_list.hpp>
#include <rosin/host_vector.hpp>

#include "graph/watch.hpp"

namespace rosin {

namespace {

// Contexts whose threads are gone. Never destroyed: globals may outlive everything.
struct Store {
  std::mutex lock;
  std::vector<Context*> retired;
  size_t contexts = 0;  // made so far: room for all of them in `retired`
};

Store& store() {
  static Store* store = new Store;
  return *store;
}

}  // namespace

constinit thread_local Context* Context::current_ = nullptr;

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

namespace {

/// Holds `evaluating` if that gets free within `tries`.
std::unique_lock<std::mutex> lock_soon(std::mutex& evaluating, int64_t tries) noexcept {
  std::unique_lock lock(evaluating, std::try_to_lock);
  for (; !lock && tries > 0; --tries) {
    std::this_thread::yield();
    if (evaluating.try_lock()) lock = std::unique_lock(evaluating, std::adopt_lock);
  }
  return lock;
}

/// Nodes that other threads have evaluated let their operands go, from the oldest on, until so many are found that are
/// not evaluated. (A thread that evaluates itself does so then.) The more wait, the longer it tries, so that others
/// that evaluate without end do not keep it from that.
void let_go_of_evaluated(Context& context, int64_t patience) noexcept {
  if (context.in_gradient()) return;
  constexpr int64_t many = 4096;
  const std::unique_lock lock = lock_soon(context.evaluating, std::max<int64_t>(context.pending_count() - many, 0));
  if (!lock) return;
  for (Node* node = context.first(); node != context.end() && patience > 0;) {
    Node* next = node->next;
    if (node->ready()) context.let_go(node);
    else --patience;
    node = next;
  }
}

}  // namespace

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
  context->take_over();
  context->watched = watches_ops();
  current_ = context;
  owner.context = context;
  let_go_of_evaluated(*context, context->pending_count());
  return *context;
}

void Context::retire(Context* context) noexcept {
  context->collect_orphans();
  context->leave();
  context->nodes_.retire();
  std::lock_guard lock(store().lock);
  store().retired.push_back(context);
}

/// A new thread holds what another one has left; dead nodes leave the list here (see bury).
void Context::take_over() noexcept {
  std::lock_guard lock(orphan_lock_);
  owned_ = true;
  for (Node* node = pending_.next; node != &pending_;) {
    Node* next = node->next;
    uint64_t counts = node->counts.load(std::memory_order_relaxed);
    while (counts != 0 && !node->counts.compare_exchange_weak(counts, counts | held_by_recorder)) {}
    if (counts == 0) unlist(node);
    node = next;
  }
}

/// What the thread's nodes refer to is counted for all threads to drop.
void Context::count_references_for_all() noexcept {
  for (Node* node = pending_.next; node != &pending_; node = node->next) {
    for (Node* operand : node->arrays()) {
      if (!operand || !is_own(node, operand)) continue;
      add_count(operand, one_reference);
      const uint32_t own = operand->own.load(std::memory_order_relaxed) - 1;
      operand->own.store(own, std::memory_order_relaxed);
      const bool listed = operand->listed.load(std::memory_order_relaxed);
      if (own == 0 && !listed) operand->counts.fetch_sub(held_by_recorder, std::memory_order_release);
    }
    node->left = true;
  }
}

/// The thread ends: its nodes belong to all threads until another one takes over.
void Context::leave() noexcept {
  release_kept();
  count_references_for_all();
  Node* orphans = nullptr;
  {
    std::lock_guard lock(orphan_lock_);
    for (Node* node = pending_.next; node != &pending_; node = node->next) {
      node->counts.fetch_sub(held_by_recorder, std::memory_order_release);
    }
    owned_ = false;
    std::swap(orphans, orphans_);
    has_orphans_.store(false, std::memory_order_relaxed);
  }
  current_ = nullptr;
  drop_orphans(orphans);
}

void Context::refill() {
  if (nodes_.find_room()) return;
  collect_orphans();  // a thread that records and never evaluates gets back what others dropped, and have evaluated
  let_go_of_evaluated(*this, 4);
  if (nodes_.has_room() || nodes_.find_room() || nodes_.find_returned()) return;
  nodes_.add_slab();
}

int64_t Context::period() const {
  constexpr int64_t looked_at = 4096, least_turns = 4;
  const int64_t count = std::min(pending_count_, looked_at);
  auto newest = detail::host_vector<uint64_t>("record", count);
  const Node* node = pending_.previous;
  for (uint64_t& facts : newest) {
    facts = node->facts();
    node = node->previous;
  }
  auto border = detail::host_vector<size_t>("record", count);  // of each beginning, the longest that is its end too
  for (size_t i = 1, length = 0; i < newest.size(); ++i) {
    while (length > 0 && newest[i] != newest[length]) length = border[length - 1];
    length += newest[i] == newest[length];
    border[i] = length;
  }
  if (count == 0) return 0;
  const int64_t turn = count - static_cast<int64_t>(border.back());
  return turn * least_turns <= count ? turn : 0;
}

void Context::keep(Node* node) noexcept {
  unlist(node);
  node->kept = true;
  node->listed.store(true, std::memory_order_relaxed);
  append(kept_, node);
}

void Context::release_kept() noexcept {
  while (kept_.next != &kept_) let_go(kept_.next);
}

uint32_t Context::fresh_stamp() noexcept {
  if (++stamp_ == 0) ++stamp_;
  return stamp_;
}

bool Context::adopt(Node* node, uint64_t which) noexcept {
  std::lock_guard lock(orphan_lock_);
  if (!owned_) return false;
  change_count(node, which, one_reference);
  node->next_orphan = orphans_;
  orphans_ = node;
  has_orphans_.store(true, std::memory_order_release);
  return true;
}

void Context::bury(Node* node) noexcept {
  std::lock_guard lock(orphan_lock_);
  if (node->listed.load(std::memory_order_relaxed)) unlist(node);
}

namespace {

/// Drops a count of a node that this thread recorded; whether it was the last. Who holds all counts needs no locked
/// instruction: nobody else can make a new one.
[[gnu::always_inline]] inline bool is_last_here(Node* node, uint64_t which) noexcept {
  const uint64_t counts = node->counts.load(std::memory_order_acquire);
  const bool referred = node->own.load(std::memory_order_relaxed) > 0;
  if ((counts & ~held_by_recorder) == which) {
    if (!referred) return true;
    node->counts.store(held_by_recorder, std::memory_order_release);
    return false;
  }
  const uint64_t rest = add_to(node->counts, -which, std::memory_order_acq_rel) - which;
  return !referred && (rest & ~held_by_recorder) == 0;
}

/// The same for a node that another thread recorded: what that one still lists is left to it.
[[gnu::noinline]] bool is_last_elsewhere(Node* node, uint64_t which) noexcept {
  uint64_t counts = node->counts.load(std::memory_order_acquire);
  for (;;) {
    if (counts == which && !node->listed.load(std::memory_order_relaxed)) return true;
    if (counts == (which | held_by_recorder)) {
      if (node->recorder->adopt(node, which)) return false;
      counts = node->counts.load(std::memory_order_acquire);
    } else if (node->counts.compare_exchange_weak(counts, counts - which, std::memory_order_acq_rel,
                                                  std::memory_order_acquire)) {
      return counts == which;
    }
  }
}

/// Drops a count; whether it was the last.
[[gnu::always_inline]] inline bool is_last(Node* node, uint64_t which) noexcept {
  return node->recorder == Context::current_or_null() ? is_last_here(node, which) : is_last_elsewhere(node, which);
}

/// The recorder holds a node no longer; whether nobody does.
bool is_last_hold(Node* node) noexcept {
  if (node->counts.load(std::memory_order_acquire) == held_by_recorder) return true;
  return add_to(node->counts, -held_by_recorder, std::memory_order_acq_rel) == held_by_recorder;
}

/// Drops the reference from a node to its operand; whether nothing holds the operand any more.
[[gnu::always_inline]] inline bool is_last_reference(const Node* node, Node* operand) noexcept {
  if (!is_own(node, operand)) return is_last(operand, one_reference);
  const uint32_t own = operand->own.load(std::memory_order_relaxed) - 1;
  operand->own.store(own, std::memory_order_relaxed);
  if (own > 0) return false;
  const bool listed = operand->listed.load(std::memory_order_relaxed);
  return listed ? operand->counts.load(std::memory_order_acquire) == held_by_recorder : is_last_hold(operand);
}

/// Gives a node without counts back; `here`: null where this thread never recorded, or has ended.
void free_node(Context* here, const Node* node) noexcept {
  if (here) here->free(node);
  else NodeSlabs::give_from_elsewhere(node);
}

/// Frees dead nodes and, without recursion, what only they held; the stack runs through `next`.
void destroy(Node* first) noexcept {
  Context* here = Context::current_or_null();
  Node* stack = nullptr;
  const auto push = [&](Node* node) {
    if (node->listed.load(std::memory_order_acquire)) {
      if (node->recorder == here) here->unlist(node);
      else node->recorder->bury(node);
    }
    node->next = stack;
    stack = node;
  };
  push(first);
  while (stack) {
    Node* node = stack;
    stack = node->next;
    for (Node* operand : node->arrays()) {
      if (!operand) continue;
      if (is_last_reference(node, operand)) push(operand);
    }
    if (node->operands == Node::many && node->list) node->list->free();
    if (node->buffer) release(node->buffer);
    free_node(here, node);
  }
}

}  // namespace

namespace {
size_t bytes_of_list(size_t count) { return sizeof(OperandList) + count * sizeof(Node*); }
}  // namespace

OperandList* OperandList::make(size_t count) try {
  auto* list = ::new (detail::take_block(bytes_of_list(count))) OperandList{static_cast<uint32_t>(count)};
  std::fill_n(list->nodes(), count, nullptr);
  return list;
} catch (const std::bad_alloc&) {
  detail::throw_out_of_memory("record", static_cast<int64_t>(count), sizeof(Node*));
}

void OperandList::free() noexcept { detail::give_block(this, bytes_of_list(count)); }

void drop_count(Node* node, uint64_t which) noexcept {
  if (is_last(node, which)) destroy(node);
}

namespace {

[[gnu::cold]] void let_go_of_list(Node* node) noexcept {
  OperandList* list = std::exchange(node->list, nullptr);
  if (!list) return;
  for (Node* operand : std::span(list->nodes(), list->count)) {
    if (operand && is_last_reference(node, operand)) destroy(operand);
  }
  list->free();
}

}  // namespace

void Context::let_go(Node* node) noexcept {
  unlist(node);
  node->kept = false;
  if (node->operands == Node::many) let_go_of_list(node);
  for (Node*& in : node->in) {
    Node* operand = in;
    in = nullptr;
    if (operand && is_last_reference(node, operand)) destroy(operand);
  }
  if (node->own.load(std::memory_order_relaxed) == 0 && is_last_hold(node)) destroy(node);
}

void Context::drop_orphans(Node* first) noexcept {
  while (first) {
    Node* node = first;
    first = node->next_orphan;
    drop_count(node, one_reference);
  }
}

void Context::collect_orphans() noexcept {
  if (!has_orphans_.load(std::memory_order_acquire)) return;
  Node* orphans = nullptr;
  {
    std::lock_guard lock(orphan_lock_);
    std::swap(orphans, orphans_);
    has_orphans_.store(false, std::memory_order_relaxed);
  }
  drop_orphans(orphans);
}

void Context::start_gradient() {
  gradient_start.store(sequence_, std::memory_order_relaxed);
  if (!is_used_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(use_lock_);
  uses_.clear();
  is_used_.store(false, std::memory_order_relaxed);
}

void Context::used_elsewhere(const Node& operand, const Node& node) {
  if (!in_gradient()) return;
  const bool of_call = operand.sequence > gradient_start.load(std::memory_order_relaxed);
  if (!of_call || !operand.op->gradient) return;  // constants may go anywhere
  std::lock_guard lock(use_lock_);
  for (const Use& use : uses_) {
    if (use.user == node.recorder) return;
  }
  uses_.push_back({node.recorder, node.sequence});
  is_used_.store(true, std::memory_order_relaxed);
}

bool Context::came_from_here(const Node& node) {
  if (!is_used_.load(std::memory_order_relaxed) || !node.op->gradient) return false;
  std::lock_guard lock(use_lock_);
  for (const Use& use : uses_) {
    if (use.user == node.recorder && node.sequence >= use.first) return true;
  }
  return false;
}

void add_foreign_reference(const Node* node, Node* operand) {
  add_count(operand, one_reference);
  operand->recorder->used_elsewhere(*operand, *node);
}

}  // namespace rosin
