// Evaluation: which pending nodes are needed, the key of that graph, its plan, and the run. See D2 and D3 of the
// design.
#include <algorithm>
#include <array>
#include <cstring>

#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "runtime/buffer_pool.hpp"
#include "runtime/plan_cache.hpp"

namespace rosin {
namespace {

using lower::Value;

/// Leaves of one graph: found by address, numbered in order of first use.
class LeafTable {
 public:
  struct Leaf {
    Node* node;
    uint32_t uses;
    uint32_t slot;
  };

  void clear() {
    for (const Leaf& leaf : leaves_) slots_[leaf.slot] = 0;
    leaves_.clear();
  }

  int32_t add(Node* node) {
    if (leaves_.size() * 2 >= slots_.size()) grow();
    const size_t slot = find(node);
    if (slots_[slot] == 0) {
      leaves_.push_back({node, 0, static_cast<uint32_t>(slot)});
      slots_[slot] = static_cast<uint32_t>(leaves_.size());
    }
    ++leaves_[slots_[slot] - 1].uses;
    return static_cast<int32_t>(slots_[slot] - 1);
  }

  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  size_t find(const Node* node) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15ull >> 20 & mask;
    while (slots_[slot] != 0 && leaves_[slots_[slot] - 1].node != node) slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    std::fill(slots_.begin(), slots_.end(), 0);
    slots_.resize(std::max<size_t>(64, slots_.size() * 2));
    for (size_t i = 0; i < leaves_.size(); ++i) {
      leaves_[i].slot = static_cast<uint32_t>(find(leaves_[i].node));
      slots_[leaves_[i].slot] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<Leaf> leaves_;
  std::vector<uint32_t> slots_;
};

uint8_t wide_dims(const Node& node) {
  uint8_t wide = 0;
  for (int d = 0; d < node.rank; ++d) wide = static_cast<uint8_t>(wide | (node.sizes[d] != 1) << d);
  return wide;
}

/// Inside a gradient call these results are kept: recomputing them would cost more than an elementwise chain.
bool costly(const Op& op) {
  return op.kind != Kind::elementwise && op.kind != Kind::movement && op.kind != Kind::argument;
}

/// Sizes that do not follow from the operands' sizes by the kind of op alone.
bool has_own_sizes(const Op& op) {
  return op.kind != Kind::elementwise && op.kind != Kind::reduction && op.kind != Kind::argument &&
         op.contraction != Contraction::matmul;
}

/// Whether a node's value must come out: a gradient call needs it, or user handles hold it (then it carries a reference
/// of this evaluation).
enum class Held : uint8_t { no, kept, pinned };

/// One evaluation. Its vectors stay with the thread, so that a steady step allocates nothing.
class Evaluation {
 public:
  static Evaluation& of_thread() {
    static thread_local Evaluation evaluation;
    return evaluation;
  }

  void run(Context& context, Context& here, Node* target);

 private:
  bool run_once(Context& context, Context& here, Node* target);
  void unpin() noexcept;
  bool collect(Context& context, Context& here, Node* target);
  void collect_pending(Context& context, Node* target);
  void collect_target(Context& context, Node* target);
  void let_go(Context& context) noexcept;
  void add_operands(Context& context, Node* node);
  bool may_donate(Context& context) const;
  void make_keys(Context& context);
  uint64_t leaf_word(const LeafTable::Leaf& leaf, bool may_donate) const;
  lower::Graph graph() const;
  lower::Sizes sizes() const;
  std::shared_ptr<Plan> plan();
  void execute(const std::shared_ptr<Plan>& plan);
  void allocate_outputs(const lower::Layout& layout);
  void release_outputs() noexcept;
  void commit(const lower::Layout& layout, Context& context, Context& here) noexcept;
  std::vector<Node*> order_;       // needed pending nodes in recording order
  std::vector<Held> held_;         // of each in order_
  std::vector<uint32_t> uses_;     // of each in order_: as an operand of others there
  std::vector<int32_t> operands_;  // four a node: >= 0 node, < 0 leaf -1 - i, `none` where absent
  std::vector<Node*> evaluated_;   // nodes on their way out of the pending list
  std::vector<Array> foreign_;     // pending nodes of other threads that are operands
  LeafTable leaves_;
  Key structure_key_, sizes_key_;
  std::vector<Memory*> outputs_;
  std::vector<void*> memory_;
  std::vector<ScalarValue> scalars_;

  static constexpr int32_t none = INT32_MIN;
};

void Evaluation::add_operands(Context& context, Node* node) {
  for (Node* operand : node->in) {
    if (!operand || operand->ready()) continue;
    if (operand->recorder == &context) continue;
    add_count(operand, one_user);
    foreign_.push_back(Array::adopt(operand));
  }
}

/// Counts a reference unless the node is dead: another thread dropped its last handle, and it waits among the orphans.
bool refer(Node* node) noexcept {
  uint64_t counts = node->counts.load(std::memory_order_relaxed);
  while (counts != 0 &&
         !node->counts.compare_exchange_weak(counts, counts + one_reference, std::memory_order_acq_rel)) {}
  return counts != 0;
}

/// All pending nodes that a user handle holds, and what they need: one walk from the newest to the oldest. Held nodes
/// are pinned: other threads may drop their handles meanwhile.
void Evaluation::collect_pending(Context& context, Node* target) {
  const uint32_t stamp = context.fresh_stamp();
  const bool in_gradient = context.gradient_depth.load(std::memory_order_relaxed) > 0;
  const size_t pending = static_cast<size_t>(context.pending_count());
  order_.reserve(pending);
  held_.reserve(pending);
  evaluated_.reserve(pending);
  for (Node* node = context.last(); node != context.end();) {
    Node* previous = node->previous;
    if (node->ready()) {
      if (refer(node)) evaluated_.push_back(node);
      node = previous;
      continue;
    }
    const bool user = (node->users() > 0 || node == target) && refer(node);
    if (user || node->mark == stamp) {
      node->mark = stamp;
      order_.push_back(node);
      const bool kept = in_gradient && node->sequence > context.gradient_start && costly(*node->op);
      held_.push_back(user ? Held::pinned : kept ? Held::kept : Held::no);
      for (Node* operand : node->in) {
        if (operand && !operand->ready() && operand->recorder == &context) operand->mark = stamp;
      }
      add_operands(context, node);
    }
    node = previous;
  }
  std::reverse(order_.begin(), order_.end());
  std::reverse(held_.begin(), held_.end());
  let_go(context);
}

/// Takes evaluated nodes out of the pending list; their operands go, unless a gradient call still walks over them.
/// Each carries one reference of ours, which goes last.
void Evaluation::let_go(Context& context) noexcept {
  const bool in_gradient = context.gradient_depth.load(std::memory_order_relaxed) > 0;
  for (Node* node : evaluated_) {
    if (in_gradient && node->sequence > context.gradient_start) {
      context.keep(node);
    } else {
      context.unlist(node);
      drop_operands(node);
    }
  }
  for (Node* node : evaluated_) drop_count(node, one_reference);
  evaluated_.clear();
}

/// What one node of another thread needs (that thread's list is its own).
void Evaluation::collect_target(Context& context, Node* target) {
  const uint32_t stamp = context.fresh_stamp();
  target->mark = stamp;
  order_.push_back(target);
  for (size_t i = 0; i < order_.size(); ++i) {
    Node* node = order_[i];
    for (Node* operand : node->in) {
      if (!operand || operand->ready() || operand->recorder != &context || operand->mark == stamp) continue;
      operand->mark = stamp;
      order_.push_back(operand);
    }
    add_operands(context, node);
  }
  std::sort(order_.begin(), order_.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  for (const Node* node : order_) held_.push_back(node->users() > 0 || node == target ? Held::kept : Held::no);
}

/// False when nodes of other threads must be evaluated first (they are in foreign_).
bool Evaluation::collect(Context& context, Context& here, Node* target) {
  order_.clear();
  held_.clear();
  foreign_.clear();
  if (&context == &here) collect_pending(context, target);
  else collect_target(context, target);
  for (size_t i = 0; i < order_.size(); ++i) order_[i]->slot = static_cast<uint32_t>(i);
  return foreign_.empty();
}

uint64_t Evaluation::leaf_word(const LeafTable::Leaf& leaf, bool may_donate) const {
  const Node& node = *leaf.node;
  bool donatable = false;
  if (may_donate && node.buffer) {
    const uint32_t guards = node.guards.load(std::memory_order_relaxed);
    // (acquire: who let go last has read what it wanted to read)
    const uint64_t counts = node.counts.load(std::memory_order_acquire);
    donatable =
        counts == one_reference * (leaf.uses + guards) && node.buffer->owners.load(std::memory_order_acquire) == 1;
  }
  return static_cast<uint64_t>(node.dtype) | uint64_t{node.rank} << 8 | uint64_t{wide_dims(node)} << 16 |
         uint64_t{is_scalar(node)} << 24 | uint64_t{donatable} << 25 | uint64_t{node.weak} << 26;
}

/// Not where there is nothing to reduce: no tile would write the result.
bool small_reduction(const Node& node) {
  const int64_t results = node.count();
  const int64_t elements = node.in[0]->count();
  return elements > 0 && elements / results <= lower::tile_limit;
}

/// Whether leaves may be overwritten: not while a gradient call walks, nor when a value that is not kept has readers
/// outside (pending nodes of other threads): they would compute it once more.
bool Evaluation::may_donate(Context& context) const {
  if (context.gradient_depth.load(std::memory_order_relaxed) > 0) return false;
  for (size_t n = 0; n < order_.size(); ++n) {
    if (held_[n] == Held::no && order_[n]->references() != uses_[n]) return false;
  }
  return true;
}

void Evaluation::make_keys(Context& context) {
  structure_key_.clear();
  sizes_key_.clear();
  operands_.clear();
  leaves_.clear();
  uses_.assign(order_.size(), 0);
  structure_key_.add(order_.size());
  for (size_t n = 0; n < order_.size(); ++n) {
    const Node& node = *order_[n];
    const Op& op = *node.op;
    uint64_t packed[2] = {};
    for (int i = 0; i < Node::max_operands; ++i) {
      int32_t at = none;
      if (node.in[i]) {
        Node* operand = node.in[i];
        at = operand->ready() ? -1 - leaves_.add(operand) : static_cast<int32_t>(operand->slot);
        if (at >= 0) ++uses_[static_cast<size_t>(at)];
      }
      operands_.push_back(at);
      packed[i / 2] |= static_cast<uint64_t>(static_cast<uint32_t>(at)) << (i % 2 * 32);
    }
    const bool small = op.kind == Kind::reduction && small_reduction(node);
    structure_key_.add(uint64_t{op.id} | static_cast<uint64_t>(node.dtype) << 32 | uint64_t{node.rank} << 40 |
                       uint64_t{wide_dims(node)} << 44 | static_cast<uint64_t>(node.compute) << 52 |
                       uint64_t{held_[n] != Held::no} << 56 | uint64_t{small} << 57);
    structure_key_.add(packed[0]);
    if (node.operands > 2) structure_key_.add(packed[1]);
    uint64_t words[8];
    std::memcpy(words, node.attributes.bytes, sizeof words);
    Key& attributes_key = op.sizes_in_attributes ? sizes_key_ : structure_key_;
    for (int w = 0; w < op.attribute_words; ++w) attributes_key.add(words[w]);
    if (has_own_sizes(op)) {
      for (int d = 0; d < node.rank; ++d) sizes_key_.add(static_cast<uint64_t>(node.sizes[d]));
    }
  }
  const bool donate = may_donate(context);
  for (const LeafTable::Leaf& leaf : leaves_.leaves()) {
    structure_key_.add(leaf_word(leaf, donate));
    for (int d = 0; d < leaf.node->rank; ++d) sizes_key_.add(static_cast<uint64_t>(leaf.node->sizes[d]));
  }
  structure_key_.finish();
  sizes_key_.finish();
}

lower::Graph Evaluation::graph() const {
  lower::Graph graph;
  graph.nodes = static_cast<int32_t>(order_.size());
  const auto add = [&](const Node& node) -> Value& {
    Value& value = graph.values.emplace_back();
    value.op = node.op;
    value.dtype = node.dtype;
    value.compute = node.compute;
    value.rank = node.rank;
    value.wide = wide_dims(node);
    return value;
  };
  for (size_t n = 0; n < order_.size(); ++n) {
    const Node& node = *order_[n];
    Value& value = add(node);
    value.operands = node.operands;
    value.held = held_[n] != Held::no;
    value.small_row = node.op->kind == Kind::reduction && small_reduction(node);
    if (node.op->kind != Kind::elementwise) value.attributes = node.attributes;
    for (int i = 0; i < Node::max_operands; ++i) {
      const int32_t at = operands_[n * Node::max_operands + static_cast<size_t>(i)];
      if (at != none) value.in[i] = at >= 0 ? at : graph.nodes + (-1 - at);
    }
  }
  const size_t leaf_words = structure_key_.words.size() - leaves_.leaves().size();
  for (size_t i = 0; i < leaves_.leaves().size(); ++i) {
    Value& value = add(*leaves_.leaves()[i].node);
    if (!value.is_scalar()) value.op = &leaf_op;
    value.donatable = structure_key_.words[leaf_words + i] >> 25 & 1;
  }
  return graph;
}

lower::Sizes Evaluation::sizes() const {
  lower::Sizes sizes;
  for (const Node* node : order_) {
    sizes.shapes.push_back(node->shape());
    sizes.attributes.push_back(node->op->kind == Kind::elementwise ? Attributes{} : node->attributes);
  }
  for (const LeafTable::Leaf& leaf : leaves_.leaves()) sizes.shapes.push_back(leaf.node->shape());
  return sizes;
}

std::shared_ptr<Plan> Evaluation::plan() {
  PlanCache& cache = PlanCache::instance();
  if (std::shared_ptr<Plan> found = cache.find(structure_key_, sizes_key_)) return found;
  auto plan = std::make_shared<Plan>();
  plan->structure = cache.find_structure(structure_key_);
  const bool new_structure = !plan->structure;
  if (new_structure) {
    plan->structure = std::make_shared<lower::Structure>(lower::compile(graph(), lower::cpu_executor->target()));
  }
  plan->layout = std::make_shared<lower::Layout>(lower::lay_out(plan->structure, sizes()));
  plan->structure_key = structure_key_;
  plan->sizes_key = sizes_key_;
  cache.insert(plan);
  std::lock_guard guard(cache.lock);
  cache.counters.structures += new_structure;
  ++cache.counters.layouts;
  return plan;
}

void Evaluation::allocate_outputs(const lower::Layout& layout) {
  outputs_.clear();
  for (const lower::Output& output : layout.outputs) {
    if (output.donor < 0) {
      outputs_.push_back(allocate_buffer(output.bytes));
      continue;
    }
    Memory* donated = leaves_.leaves()[static_cast<size_t>(output.donor) - order_.size()].node->buffer;
    retain(donated);
    outputs_.push_back(donated);
  }
}

void Evaluation::release_outputs() noexcept {
  for (Memory* buffer : outputs_) release(buffer);
  outputs_.clear();
}

void Evaluation::execute(const std::shared_ptr<Plan>& plan) {
  const lower::Layout& layout = *plan->layout;
  PlanCache& cache = PlanCache::instance();
  std::unique_ptr<lower::Instance> instance = cache.take(*plan);
  try {
    allocate_outputs(layout);
    memory_.assign(layout.structure->graph.values.size(), nullptr);
    scalars_.resize(memory_.size() * lower::scalars_of_value);
    for (size_t n = 0; n < order_.size(); ++n) {
      for (int i = 0; order_[n]->scalars >> i; ++i) {
        if (order_[n]->scalars >> i & 1)
          scalars_[lower::scalar_index(static_cast<int32_t>(n), i)] = order_[n]->number(i);
      }
    }
    for (size_t i = 0; i < leaves_.leaves().size(); ++i) {
      const Node& node = *leaves_.leaves()[i].node;
      const size_t value = order_.size() + i;
      if (is_scalar(node)) scalars_[lower::scalar_index(static_cast<int32_t>(value), -1)] = scalar_value(node);
      else memory_[value] = node.data();
    }
    for (size_t i = 0; i < layout.outputs.size(); ++i) {
      memory_[static_cast<size_t>(layout.outputs[i].value)] = outputs_[i]->data;
    }
    instance->run(memory_.data(), scalars_.data());
  } catch (...) {
    release_outputs();
    cache.give_back(*plan, std::move(instance));
    throw;
  }
  cache.give_back(*plan, std::move(instance));
  std::lock_guard guard(cache.lock);
  ++cache.counters.evaluations;
  for (const lower::Step& step : layout.structure->steps)
    ++(step.kernel >= 0 ? cache.counters.kernels : cache.counters.calls);
}

/// Hands the values to the nodes; nodes of this thread let their operands go.
void Evaluation::commit(const lower::Layout& layout, Context& context, Context& here) noexcept {
  for (const lower::Result& result : layout.results) {
    Node* node = order_[static_cast<size_t>(result.node)];
    node->buffer = result.output >= 0 ? outputs_[static_cast<size_t>(result.output)]
                                      : leaves_.leaves()[static_cast<size_t>(result.leaf) - order_.size()].node->buffer;
    retain(node->buffer);
    node->state.store(NodeState::ready, std::memory_order_release);
  }
  release_outputs();
  if (&context != &here) return;  // the recording thread lets the operands go when it evaluates next
  for (const lower::Result& result : layout.results) {
    Node* node = order_[static_cast<size_t>(result.node)];
    Held& held = held_[static_cast<size_t>(result.node)];
    if (held != Held::pinned) add_count(node, one_reference);
    held = Held::kept;  // the pin goes with the operands
    evaluated_.push_back(node);
  }
  let_go(context);
}

void Evaluation::unpin() noexcept {
  for (size_t n = 0; n < held_.size(); ++n) {
    if (held_[n] == Held::pinned) drop_count(order_[n], one_reference);
  }
  held_.clear();
}

/// False when nodes of other threads must be evaluated first.
bool Evaluation::run_once(Context& context, Context& here, Node* target) {
  std::lock_guard lock(context.evaluating);
  if (&context == &here) context.collect_orphans();
  if (target && target->ready()) return true;
  struct Unpin {
    Evaluation& self;
    ~Unpin() { self.unpin(); }
  } at_end{*this};
  if (!collect(context, here, target)) return false;
  if (order_.empty()) return true;
  make_keys(context);
  const std::shared_ptr<Plan> found = plan();
  evaluated_.reserve(found->layout->results.size());  // commit must not fail
  execute(found);
  commit(*found->layout, context, here);
  return true;
}

void Evaluation::run(Context& context, Context& here, Node* target) {
  while (!run_once(context, here, target)) {
    const std::vector<Array> others = std::move(foreign_);
    for (const Array& other : others) run(*other.node()->recorder, here, other.node());
  }
}

void evaluate(Context& here, Node* target) {
  Context& context = target && target->recorder ? *target->recorder : here;
  Evaluation::of_thread().run(context, here, target);
}

[[maybe_unused]] const bool installed = [] {
  hooks.evaluate = evaluate;
  hooks.allocate = allocate_buffer;
  return true;
}();

}  // namespace
}  // namespace rosin
