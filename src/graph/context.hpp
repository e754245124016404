// Context: what one recording thread owns. Its nodes come from here; its pending nodes are listed here in recording
// order. Only the owning thread touches the lists; another thread that drops a listed node leaves it to `orphans_`.
// Evaluation (by any thread) holds `evaluating`. Contexts are never freed: a new thread takes over a retired one.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "graph/node_slabs.hpp"
#include "graph/op.hpp"

namespace rosin {

/// Pending nodes after which recording evaluates by itself.
inline constexpr int64_t pending_limit = 20000;

class Context {
 public:
  /// The calling thread's context.
  static Context& current() { return current_ ? *current_ : acquire(); }
  /// The same, or null when this thread never recorded.
  static Context* current_or_null() noexcept { return current_; }

  /// From here on `start` has a node to give.
  void make_room() {
    if (!nodes_.has_room()) refill();
  }
  /// A fresh node with one user handle, listed when it is pending. Sizes, device and operands are the caller's to set;
  /// make_room() came before. Inlined where all is known, it is a handful of wide stores.
  Node* start(const Op& op, NodeState state, DType type, ScalarType compute, int operands) {
    Node* node = nodes_.take();
    const bool pending = state == NodeState::pending;
    node->counts.store(one_user | (pending ? held_by_recorder : 0), std::memory_order_relaxed);
    node->op = &op;
    for (Node*& in : node->in) in = nullptr;
    node->recorder = this;
    node->buffer = nullptr;
    node->sequence = ++sequence_;
    node->own.store(0, std::memory_order_relaxed);
    node->weak = false;
    node->device = 0;
    node->dtype = type;
    node->compute = compute;
    node->op_id = op.id;
    node->operands = static_cast<uint8_t>(operands);
    node->scalars = 0;
    node->tied = false;
    node->state.store(state, std::memory_order_relaxed);
    node->listed.store(pending, std::memory_order_relaxed);
    node->kept = false;
    node->left = false;
    node->settled = false;
    node->guards.store(0, std::memory_order_relaxed);
    node->mark = 0;
    node->recorded_in = {};
    if (pending) list(node);
    return node;
  }
  /// Takes back a node that nothing holds, whoever has recorded it.
  void free(const Node* node) noexcept { nodes_.give(node); }

  /// Takes a node out of the list it is in. Owning thread only.
  void unlist(Node* node) noexcept {
    node->previous->next = node->next;
    node->next->previous = node->previous;
    if (!node->kept) --pending_count_;
    node->listed.store(false, std::memory_order_release);  // last: who sees it may free the node
  }
  /// Moves a ready node to the kept nodes: evaluated inside a gradient call that still needs its operands.
  void keep(Node* node) noexcept;

  /// Pending nodes, oldest first: for (n = first(); n != end(); n = n->next).
  Node* first() noexcept { return pending_.next; }
  Node* last() noexcept { return pending_.previous; }
  Node* end() noexcept { return &pending_; }
  int64_t pending_count() const noexcept { return pending_count_; }
  /// Whether so many nodes are pending that recording evaluates by itself; what an evaluation left does not count.
  bool is_full() const noexcept { return pending_count_ >= pending_bound_; }
  void set_bound(int64_t more = pending_limit) noexcept { pending_bound_ = pending_count_ + more; }
  /// After how many pending nodes the newest ones begin anew, as those of a loop do whose values nobody reads; 0: they
  /// do not.
  int64_t period() const;

  /// Gradient calls in progress; evaluation keeps what they need.
  std::atomic<int> gradient_depth{0};
  bool in_gradient() const noexcept { return gradient_depth.load(std::memory_order_relaxed) > 0; }
  /// Nodes with a lower sequence number were recorded before the outermost gradient call.
  std::atomic<uint64_t> gradient_start{0};
  /// What has a higher sequence number was recorded since a walk back began.
  static constexpr uint64_t no_walk = UINT64_MAX;
  uint64_t backward_start = no_walk;
  /// All that was pending is evaluated.
  void evaluated_all() noexcept {
    evaluated = sequence();
    if (!in_gradient()) backward_start = no_walk;
  }
  /// Begins the outermost gradient call.
  void start_gradient();
  /// Another thread has recorded `node` from an operand of this context.
  void used_elsewhere(const Node& operand, const Node& node);
  /// Whether another thread computed the node from what the gradient call in progress has recorded, as far as that is
  /// known: it says so of all that the thread recorded since.
  bool came_from_here(const Node& node);
  /// Ends the outermost gradient call: kept nodes let their operands go.
  void release_kept() noexcept;

  /// The device of arrays that are made from numbers alone, such as random draws; see DeviceScope.
  uint8_t device = 0;
  /// Whether single elements of arrays on other devices may be read.
  bool allows_scalar = false;
  /// Whether some of the pending nodes have failed (NodeState).
  bool has_failed = false;
  /// Whether every op is evaluated at its call; see watch.hpp.
  bool watched = false;
  /// Called after each evaluation where some arrays must not be read: it throws if one was. Null: all may be.
  void (*check_reads)() = nullptr;
  /// What has a higher sequence number was recorded since the last evaluation of all that is pending.
  uint64_t evaluated = 0;
  /// During a step of an optimiser: which nodes will stand where arrays of the model or the state stood. A device that
  /// overwrites those gives each the memory of its own predecessor: where the run fails, all stand there as before.
  struct Heir {
    const Node* node;
    const Node* of;
  };
  std::vector<Heir> heirs;
  /// The checkpoint region and the math mode that nodes are recorded in now; and a fresh region.
  RecordedIn recorded_in;
  uint32_t fresh_region() noexcept { return regions_ = regions_ % RecordedIn::most_regions + 1; }

  uint64_t sequence() const noexcept { return sequence_; }
  /// A stamp for Node::mark that no node carries. Hold `evaluating` while using marks.
  uint32_t fresh_stamp() noexcept;

  /// Evaluated nodes leave the list, and their operands go. Owning thread only.
  void let_go(Node* node) noexcept;

  /// Drops nodes that other threads left here. Owning thread only.
  void collect_orphans() noexcept;
  /// Takes over the only count of a listed node from another thread; false where the owning thread has gone.
  bool adopt(Node* node, uint64_t which) noexcept;
  /// Takes a dead node out of the list of a thread that has gone.
  void bury(Node* node) noexcept;

  std::mutex evaluating;

 private:
  Context();
  static Context& acquire();
  static void retire(Context* context) noexcept;
  friend struct ContextOwner;
  void take_over() noexcept;
  void leave() noexcept;
  void count_references_for_all() noexcept;
  void drop_orphans(Node* first) noexcept;
  void refill();
  /// Appends a fresh node to the pending nodes.
  void list(Node* node) noexcept {
    append(pending_, node);
    ++pending_count_;
  }
  void append(Node& list, Node* node) noexcept {
    node->next = &list;
    node->previous = list.previous;
    list.previous->next = node;
    list.previous = node;
  }

  static constinit __attribute__((tls_model("initial-exec"))) thread_local Context* current_;

  NodeSlabs nodes_;
  int64_t pending_count_ = 0;
  int64_t pending_bound_ = pending_limit;
  uint64_t sequence_ = 0;
  uint32_t stamp_ = 0;
  uint32_t regions_ = 0;
  Node pending_;  // sentinels of circular lists
  Node kept_;
  std::mutex orphan_lock_;
  bool owned_ = true;
  std::atomic<bool> has_orphans_{false};
  Node* orphans_ = nullptr;  // each with one reference, which is to be dropped

  /// A thread that used nodes of the gradient call in progress, and the first node that it made of them.
  struct Use {
    Context* user;
    uint64_t first;
  };
  std::mutex use_lock_;
  std::atomic<bool> is_used_{false};
  std::vector<Use> uses_;
};

/// Fresh values where a DeviceScope wants them.
Array in_scope(const Array& x);
/// The same of values that follow from the program and sizes alone, so that each step has them anew: they are sent to a
/// device once (sent_constants.hpp).
Array table(const Array& x);

/// While it lives, arrays that this thread makes from numbers alone stand on the device of `x`, or at that position.
class DeviceScope {
 public:
  explicit DeviceScope(const Node& x) noexcept : DeviceScope(x.device) {}
  explicit DeviceScope(uint8_t device) noexcept : context_(Context::current()), before_(context_.device) {
    context_.device = device;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() { context_.device = before_; }

 private:
  Context& context_;
  uint8_t before_;
};

}  // namespace rosin
