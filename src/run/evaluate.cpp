// One run: which pending nodes are needed, the key of that graph, its plan, and its execution. See D2 and D3 of the
// design. Read next: evaluate_order.cpp (which runs there are).
#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "base/of_thread.hpp"
#include "graph/context.hpp"
#include "graph/kinds.hpp"
#include "graph/leaf.hpp"
#include "graph/math_mode.hpp"
#include "graph/recording_site.hpp"
#include "graph/run_gate.hpp"
#include "run/buffer_pool.hpp"
#include "run/cpu_stream.hpp"
#include "run/device_table.hpp"
#include "run/early.hpp"
#include "run/evaluate.hpp"
#include "run/leaf_heirs.hpp"
#include "run/leaf_table.hpp"
#include "run/memory_text.hpp"
#include "run/packed_leaves.hpp"
#include "run/parts.hpp"
#include "run/passing.hpp"
#include "run/plan_cache.hpp"
#include "run/run_timer.hpp"
#include "run/size_limits.hpp"

namespace rosin {
namespace {

using plan::Value;

struct ReleaseMemory {
  void operator()(Memory* memory) const { release(memory); }
};
using Arena = std::unique_ptr<Memory, ReleaseMemory>;

/// From the arenas of the plan's device. It goes back when the run is over, which may be after it is released.
Arena borrow(Plan& plan, size_t bytes) {
  if (bytes == 0) return nullptr;
  if (!plan.device) return Arena(borrow_arena(bytes));
  std::atomic<const Memory*>& last = plan.slots.back().last;
  Arena arena(plan.device->pool.borrow(bytes, last.load(std::memory_order_relaxed)));
  last.store(arena.get(), std::memory_order_relaxed);
  return arena;
}

/// One evaluation. Its vectors stay with the thread, so that a steady step allocates nothing.
class Evaluation {
 public:
  static Evaluation& of_thread() { return rosin::of_thread<Evaluation>(); }

  bool run(const Wanted& wanted, Context& here);

  std::vector<Array> foreign;  // pending nodes of other threads that are operands

 private:
  struct Outgoing {
    Memory* buffer;
    bool given;  // its owner is a node by now
  };

  bool collect(const Wanted& wanted);
  void collect_pending(Context& context, Node* target);
  void collect_alone(Context& context, std::span<const Array> nodes);
  void let_go(Context& context, Node* node) noexcept;
  void add_foreign(Node* operand);
  void ask_device();
  void find_modes();
  void make_keys(Context& context, bool may_donate);
  uint64_t* add_node(size_t n, uint64_t* words);
  void add_many(const Node& node);
  void add_attributes(const Node& node);
  MathMode mode_of(const Node& node) const { return modes_[static_cast<size_t>(node.recorded_in.mode())]; }
  uint32_t operand_word(Node* operand);
  bool has_readers_outside() const;
  bool only_read_here(const LeafTable::Leaf& leaf) const;
  plan::Graph graph() const;
  plan::Sizes sizes() const;
  std::shared_ptr<Plan> plan();
  void look_at_checks(const Plan& plan);
  void execute(const std::shared_ptr<Plan>& plan);
  void fill_memory(const Plan& plan);
  bool post(const std::shared_ptr<Plan>& plan, const plan::Prepared& prepared, Memory* arena) noexcept;
  size_t allocate_outputs(Plan& plan);
  void release_outputs() noexcept;
  Memory* value_of(const plan::Result& result) noexcept;
  void commit(const plan::Layout& layout, Context& context, Context& here) noexcept;
  int32_t number_of(const Node* operand) const;

  uint32_t stamp_ = 0;                     // marks the nodes that are needed, and leaves
  std::vector<Node*> order_;               // needed pending nodes in recording order
  std::vector<uint8_t> held_;              // of each in order_: whether its value must come out
  std::vector<Node*> evaluated_;           // nodes of the pending list that other threads have evaluated
  uint8_t device_ = 0;                     // of the nodes in order_
  uint8_t asked_ = 0;                      // the device that was asked for what follows
  SizeLimits limits_;                      // of the device that was asked
  MathMode usual_mode_ = MathMode::exact;  // that the device takes by itself
  MathMode modes_[4] = {};                 // what it computes in where a node says that mode
  bool elsewhere_ = false;                 // nodes of another device are held and pending
  bool has_others_ = false;                // pending nodes that only other threads may need
  bool passes_ = false;                    // nodes that a handle holds stay pending, and need what they read
  bool has_numbers_ = false;               // some nodes of order_ carry C++ numbers
  LeafTable leaves_;
  LeafHeirs heirs_;
  PackedLeaves packed_;
  Key structure_key_, sizes_key_;
  std::vector<uint64_t> attributes_;   // words of the structure key that follow those of the nodes
  std::vector<plan::NodeSite> sites_;  // of nodes that check values, where a layer has recorded them
  std::vector<Outgoing> outputs_;
  CpuStream::Run run_;                               // what the plan runs on
  std::vector<Memory*> reads_, makes_, overwrites_;  // of a device, by the run
  bool behind_ = false;                              // may return before it has run
  bool defers_ = false;                              // of a device: what its checks find is thrown later

  static constexpr int32_t none = INT32_MIN;
};

void Evaluation::add_foreign(Node* operand) {
  add_count(operand, one_user);
  foreign.push_back(Array::adopt(operand));
}

/// All pending nodes that a user handle holds, and what they need: one walk from the newest to the oldest. This thread
/// holds what it lists, so none of them ends meanwhile.
void Evaluation::collect_pending(Context& context, Node* target) {
  const uint32_t stamp = stamp_;
  const bool in_gradient = context.in_gradient();
  const size_t pending = static_cast<size_t>(context.pending_count());
  evaluated_.reserve(pending);
  order_.resize(pending);
  held_.resize(pending);
  size_t first = pending;  // filled from the back: what is recorded later comes first
  for (Node* node = context.last(); node != context.end(); node = node->previous) {
    const NodeState state = node->state.load(std::memory_order_acquire);
    if (state == NodeState::ready) {
      evaluated_.push_back(node);
      continue;
    }
    const bool user = comes_out(*node, node == target);
    if ((!user || state != NodeState::pending) && node->mark != stamp) {  // what is set aside only where it is needed
      has_others_ = has_others_ || !is_look_at_file(*node);
      continue;
    }
    if (first == pending && !target) device_ = node->device;
    if (node->device != device_) {
      elsewhere_ = true;
      continue;
    }
    if (has_become_part(*node)) {
      evaluated_.push_back(node);
      continue;
    }
    order_[--first] = node;
    held_[first] = user || (in_gradient && node->sequence > context.gradient_start && is_costly(*node->op));
    for (Node* operand : node->arrays()) {
      if (!operand || operand->ready()) continue;
      if (operand->recorder == &context) operand->mark = stamp;
      else add_foreign(operand);
    }
  }
  order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(first));
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(first));
  for (; !evaluated_.empty(); evaluated_.pop_back()) let_go(context, evaluated_.back());
}

/// An evaluated node leaves the pending list; its operands go, unless a gradient call still walks over them. Older
/// nodes first: what a later one holds then ends with that one.
void Evaluation::let_go(Context& context, Node* node) noexcept {
  if (context.in_gradient() && node->sequence > context.gradient_start) context.keep(node);
  else context.let_go(node);
}

/// What these nodes need, which may be another thread's: that thread's list is its own.
void Evaluation::collect_alone(Context& context, std::span<const Array> nodes) {
  const auto add = [&](Node* node) {
    if (node->mark == stamp_) return;
    node->mark = stamp_;
    order_.push_back(node);
  };
  for (const Array& x : nodes) {
    Node* node = x.node();
    if (node->ready()) continue;
    if (order_.empty()) device_ = node->device;
    if (node->device == device_) add(node);
    else elsewhere_ = true;
  }
  for (size_t i = 0; i < order_.size(); ++i) {
    for (Node* operand : order_[i]->arrays()) {
      if (!operand || operand->ready()) continue;
      if (operand->recorder == &context) add(operand);
      else add_foreign(operand);
    }
  }
  std::sort(order_.begin(), order_.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  for (const Node* node : order_) held_.push_back(node->users() > 0 && comes_out(*node, is_among(nodes, *node)));
}

/// False when nodes of other threads must be evaluated first.
bool Evaluation::collect(const Wanted& wanted) {
  order_.clear();
  held_.clear();
  foreign.clear();
  elsewhere_ = has_others_ = passes_ = false;
  stamp_ = wanted.context.fresh_stamp();
  if (wanted.target) device_ = wanted.target->device;
  if (wanted.alone.empty()) collect_pending(wanted.context, wanted.target);
  else collect_alone(wanted.context, wanted.alone);
  if (wanted.last_use && foreign.empty() && !elsewhere_ && !wanted.context.in_gradient())
    passes_ = leave_out_passing({order_, wanted.target, wanted.context.evaluated}, held_);
  return foreign.empty();
}

/// What an operand is: >= 0 the node of that number, < 0 leaf -1 - i, or none.
int32_t Evaluation::number_of(const Node* operand) const {
  if (!operand) return none;
  return operand->ready() ? -1 - leaves_.number(operand) : static_cast<int32_t>(operand->slot);
}

/// The same as a part of a key; a leaf gets its number.
[[gnu::always_inline]] inline uint32_t Evaluation::operand_word(Node* operand) {
  if (!operand) return static_cast<uint32_t>(none);
  return static_cast<uint32_t>(operand->ready() ? -1 - leaves_.add(operand) : static_cast<int32_t>(operand->slot));
}

/// Words of the structure key for a node, at most.
constexpr size_t node_words = 1 + Node::max_operands / 2;

/// Numbers a node and writes what it adds to the keys, for the structure from `words` on; its operands have their
/// numbers. Where the words end. (Every recorded op comes here: appending to the vector makes it 4 % slower.)
[[gnu::always_inline]] inline uint64_t* Evaluation::add_node(size_t n, uint64_t* words) {
  Node& node = *order_[n];
  const Op& op = *node.op;
  node.slot = static_cast<uint32_t>(n);
  has_numbers_ |= node.scalars != 0;
  const bool small = limits_.is_small(node);
  *words++ = node.facts() | uint64_t{held_[n]} << Node::free_fact | uint64_t{small} << (Node::free_fact + 1) |
             static_cast<uint64_t>(mode_of(node)) << (Node::free_fact + 2);
  if (node.operands == Node::many) {
    add_many(node);
  } else {
    for (int i = 0; i < Node::max_operands && i < node.operands; i += 2) {
      const uint64_t first = operand_word(node.in[i]);
      *words++ = first << 32 | operand_word(node.in[i + 1]);
    }
  }
  if (op.kind != Kind::elementwise) add_attributes(node);
  return words;
}

/// Words for the operands of a node that has them in a list.
[[gnu::cold]] void Evaluation::add_many(const Node& node) {
  attributes_.push_back(node.arrays().size());
  for (Node* operand : node.arrays()) attributes_.push_back(operand_word(operand));
}

void Evaluation::add_attributes(const Node& node) {
  const Op& op = *node.op;
  std::vector<uint64_t>& words = op.sizes_in_attributes ? sizes_key_.words : attributes_;
  for (int w = 0; w < op.attribute_words; ++w) words.push_back(node.attributes.word(w));
  if (info(op.kind).checks) {
    if (const uint32_t site = site_of(node.attributes)) sites_.push_back({static_cast<int32_t>(node.slot), site});
  }
  if (!sizes_follow(op)) {
    for (int d = 0; d < node.rank; ++d) sizes_key_.add(static_cast<uint64_t>(node.sizes[d]));
  }
}

/// Whether nodes that are not evaluated now read a value that is not kept: they would compute it once more. These are
/// nodes of other threads, or such as only these may need.
bool Evaluation::has_readers_outside() const {
  if (has_others_) return true;
  for (size_t n = 0; n < order_.size(); ++n) {
    if (!held_[n] && order_[n]->foreign_references() != 0) return true;
  }
  return false;
}

/// Whether nobody else holds the leaf, so that its memory may take a result.
bool Evaluation::only_read_here(const LeafTable::Leaf& leaf) const {
  const Node& node = *leaf.node;
  if (!node.buffer || is_lent(*node.buffer)) return false;
  const uint32_t guards = node.guards.load(std::memory_order_relaxed);
  // (acquire: who let go last has read what it wanted to read)
  const uint64_t counts = node.counts.load(std::memory_order_acquire);
  return static_cast<uint32_t>(counts) == 0 && node.references_in(counts) == leaf.uses + guards &&
         node.buffer->owners.load(std::memory_order_acquire) == 1;
}

/// What keys must know of the device. (Other devices than the first are found under a lock: each is asked once.)
void Evaluation::ask_device() {
  if (device_ == 0 || device_ != asked_) {
    const plan::Target& target = DeviceTable::instance().executor(device_).target();
    limits_ = SizeLimits::of(target);
    usual_mode_ = target.usual_mode();
    asked_ = device_;
  }
  find_modes();
}

/// What the device computes in where nodes say usual, exact, standard, fast. The CPU has one plan for all of them.
void Evaluation::find_modes() {
  const MathMode said = program_math_mode(), usual = said == MathMode::usual ? usual_mode_ : said;
  for (const MathMode mode : {MathMode::usual, MathMode::exact, MathMode::standard, MathMode::fast}) {
    const MathMode taken = mode == MathMode::usual ? usual : mode;
    modes_[static_cast<size_t>(mode)] = device_ == 0 ? MathMode::exact : taken;
  }
}

/// Leaves may be overwritten unless a gradient call walks, or values that are not kept have readers outside. (Who
/// computes some nodes alone does not look for those.)
void Evaluation::make_keys(Context& context, bool may_donate) {
  ask_device();
  sizes_key_.clear();
  attributes_.clear();
  sites_.clear();
  leaves_.clear(context, stamp_);
  std::vector<uint64_t>& words = structure_key_.words;
  words.resize(1 + order_.size() * node_words);
  uint64_t* end = words.data();
  *end++ = order_.size() | uint64_t{device_} << 32;
  has_numbers_ = false;
  for (size_t n = 0; n < order_.size(); ++n) end = add_node(n, end);
  words.resize(static_cast<size_t>(end - words.data()));
  words.insert(words.end(), attributes_.begin(), attributes_.end());
  heirs_.find(device_, context, order_, leaves_);
  heirs_.each_word([&](uint64_t word) { structure_key_.add(word); });
  may_donate = may_donate && !context.in_gradient();
  bool asked = false;  // for readers: only where something could be donated
  for (const LeafTable::Leaf& leaf : leaves_.leaves()) {
    const bool donatable = may_donate && only_read_here(leaf);
    if (donatable && !asked) may_donate = !has_readers_outside();
    asked = asked || donatable;
    structure_key_.add(leaf_word(*leaf.node) | uint64_t{donatable && may_donate} << donatable_bit);
    for (int d = 0; d < leaf.node->rank; ++d) sizes_key_.add(static_cast<uint64_t>(leaf.node->sizes[d]));
  }
  structure_key_.finish();
  sizes_key_.finish();
}

plan::Graph Evaluation::graph() const {
  plan::Graph graph;
  graph.nodes = static_cast<int32_t>(order_.size());
  const auto is_backward = [](const Node* node) { return node->sequence > node->recorder->backward_start; };
  graph.backward = static_cast<int32_t>(std::find_if(order_.begin(), order_.end(), is_backward) - order_.begin());
  const auto add = [&](const Node& node) -> Value& {
    Value& value = graph.values.emplace_back();
    value.op = node.op;
    value.dtype = node.dtype;
    value.compute = node.compute;
    value.rank = node.rank;
    value.wide = node.wide;
    return value;
  };
  for (size_t n = 0; n < order_.size(); ++n) {
    const Node& node = *order_[n];
    Value& value = add(node);
    value.operands = node.operand_count();
    value.in.resize(value.operands);
    value.held = held_[n];
    value.mode = mode_of(node);
    value.small = limits_.is_small(node);
    if (node.op->kind != Kind::elementwise) value.attributes = node.attributes;
    int32_t* in = value.in.begin();
    for (const Node* operand : node.arrays()) {
      const int32_t at = number_of(operand);
      *in++ = at == none ? -1 : at >= 0 ? at : graph.nodes + (-1 - at);
    }
  }
  const uint64_t* leaf_words = structure_key_.words.data() + structure_key_.words.size() - leaves_.leaves().size();
  for (size_t i = 0; i < leaves_.leaves().size(); ++i) {
    Value& value = add(*leaves_.leaves()[i].node);
    if (!value.is_scalar()) value.op = &leaf_op;
    value.donatable = leaf_words[i] >> donatable_bit & 1;
    value.guarded = leaf_words[i] >> guarded_bit & 1;
  }
  heirs_.mark(graph);
  return graph;
}

plan::Sizes Evaluation::sizes() const {
  plan::Sizes sizes;
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
  const auto since = std::chrono::steady_clock::now();
  auto plan = std::make_shared<Plan>();
  plan->executor = &DeviceTable::instance().executor(device_);
  if (device_ != 0) plan->device = &DeviceTable::instance().open(device_);
  plan->compiled = cache.find_compiled(structure_key_);
  const bool new_structure = !plan->compiled;
  if (new_structure) {
    plan->compiled =
        plan->executor->compile(std::make_shared<plan::Structure>(plan::compile(graph(), plan->executor->target())));
  }
  plan->layout = std::make_shared<plan::Layout>(plan::lay_out(plan->compiled->structure, sizes()));
  for (const plan::Step& step : plan->compiled->structure->steps) ++(step.kernel >= 0 ? plan->kernels : plan->calls);
  plan->slots = std::vector<plan::MemorySlot>(plan->layout->outputs.size() + 1);
  plan->structure_key = structure_key_;
  plan->sizes_key = sizes_key_;
  cache.insert(plan);
  cache.count_plan(new_structure, since);
  return plan;
}

/// Gives the bytes that hold nothing yet.
size_t Evaluation::allocate_outputs(Plan& plan) {
  outputs_.clear();
  size_t bytes = 0;
  for (size_t i = 0; i < plan.layout->outputs.size(); ++i) {
    const plan::Output& output = plan.layout->outputs[i];
    if (output.donor < 0) {
      outputs_.push_back({plan.executor->allocate(output.bytes, plan.slots[i]), false});
      bytes += static_cast<size_t>(output.bytes);
      continue;
    }
    Memory* donated = leaves_.leaves()[static_cast<size_t>(output.donor) - order_.size()].node->buffer;
    PackedForms::forget(*donated);
    retain(donated);
    outputs_.push_back({donated, false});
  }
  return bytes;
}

void Evaluation::release_outputs() noexcept {
  for (const Outgoing& output : outputs_) {
    if (!output.given) release(output.buffer);
  }
  outputs_.clear();
}

/// Where the run finds leaves, outputs and numbers.
void Evaluation::fill_memory(const Plan& plan) {
  const plan::Layout& layout = *plan.layout;
  reads_.clear();
  makes_.clear();
  overwrites_.clear();
  run_.memory.assign(layout.structure->graph.values.size(), nullptr);
  run_.scalars.resize(run_.memory.size() * plan::scalars_of_value);
  ScalarValue* scalars = run_.scalars.data();
  for (size_t n = 0; has_numbers_ && n < order_.size(); ++n) {
    const Node& node = *order_[n];
    const ScalarValue* number = node.numbers;
    for (unsigned left = node.scalars; left != 0; left &= left - 1) {
      scalars[plan::scalar_index(static_cast<int32_t>(n), std::countr_zero(left))] = *number++;
    }
  }
  for (size_t i = 0; i < leaves_.leaves().size(); ++i) {
    const Node& node = *leaves_.leaves()[i].node;
    const size_t value = order_.size() + i;
    if (is_scalar(node)) scalars[plan::scalar_index(static_cast<int32_t>(value), -1)] = scalar_value(node);
    else if (device_ == 0) run_.memory[value] = node.data();
    else run_.memory[value] = node.buffer->data;  // its stream, not this thread, waits for what the leaf waits for
    if (!is_scalar(node) && device_ != 0) reads_.push_back(node.buffer);
  }
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    run_.memory[static_cast<size_t>(layout.outputs[i].value)] = outputs_[i].buffer->data;
    if (device_ != 0) (layout.outputs[i].donor < 0 ? makes_ : overwrites_).push_back(outputs_[i].buffer);
  }
}

/// Leaves the run to the CPU's stream; false where that does not take it.
bool Evaluation::post(const std::shared_ptr<Plan>& plan, const plan::Prepared& prepared, Memory* arena) noexcept {
  if (!behind_ || !prepared.may_run_behind()) return false;
  CpuStream& stream = CpuStream::instance();
  const Ticket ticket = stream.begin(run_);
  if (ticket == Ticket()) return false;
  for (const LeafTable::Leaf& leaf : leaves_.leaves()) {
    if (!is_scalar(*leaf.node)) whole_of(*leaf.node->buffer).used_by.store(ticket, std::memory_order_relaxed);
  }
  for (const Outgoing& output : outputs_) {
    output.buffer->used_by.store(ticket, std::memory_order_relaxed);
    output.buffer->written_by.store(ticket, std::memory_order_relaxed);
  }
  if (arena) arena->used_by.store(ticket, std::memory_order_relaxed);
  run_.plan = plan;
  run_.prepared = &prepared;
  run_.arena = arena;
  stream.post(run_);
  return true;
}

void Evaluation::execute(const std::shared_ptr<Plan>& plan) {
  PlanCache& cache = PlanCache::instance();
  CpuStream::finish();
  EarlyResults* const early = EarlyResults::of_thread();
  try {
    const size_t fresh = allocate_outputs(*plan);  // first: what has memory has sizes that the calls can compute with
    const plan::Prepared& prepared = cache.prepared(*plan);
    const Arena arena = borrow(*plan, prepared.arena_bytes());
    fill_memory(*plan);
    if (RunGate* const gate = RunGate::of_thread()) gate->memory_is_there(fresh + prepared.arena_bytes());
    const std::unique_ptr<RunTimer> timer = RunTimer::of_profile(*plan);
    if (timer || !post(plan, prepared, arena.get())) {
      plan::StepListener* listener = early ? early->begin(*plan->layout, order_, run_.memory.data()) : nullptr;
      if (timer) listener = timer->begin(listener);
      packed_.find(prepared, leaves_, order_.size());
      prepared.run({.values = run_.memory.data(),
                    .scalars = run_.scalars.data(),
                    .arena = arena.get(),
                    .reads = reads_,
                    .makes = makes_,
                    .overwrites = overwrites_,
                    .sites = sites_,
                    .defers = defers_,
                    .listener = listener,
                    .packed = packed_.memory()});
      if (timer) timer->finish();
    }
  } catch (...) {
    if (early) early->fail();
    release_outputs();
    throw;
  }
  count_step();
  cache.count_run(*plan);
}

/// Hands the values to the nodes; nodes of this thread let their operands go.
void Evaluation::commit(const plan::Layout& layout, Context& context, Context& here) noexcept {
  for (const plan::Result& result : layout.results) {
    Node* node = order_[static_cast<size_t>(result.node)];
    node->buffer = value_of(result);
    node->state.store(NodeState::ready, std::memory_order_release);
  }
  release_outputs();
  if (&context != &here) return;  // the recording thread lets the operands go when it evaluates next
  for (const plan::Result& result : layout.results) let_go(context, order_[static_cast<size_t>(result.node)]);
}

/// The memory of a result, with one owner more: what an output has from the beginning goes to the first that asks.
Memory* Evaluation::value_of(const plan::Result& result) noexcept {
  if (result.output >= 0) {
    Outgoing& output = outputs_[static_cast<size_t>(result.output)];
    if (output.given) retain(output.buffer);
    output.given = true;
    return output.buffer;
  }
  Memory* buffer = leaves_.leaves()[static_cast<size_t>(result.leaf) - order_.size()].node->buffer;
  retain(buffer);
  return buffer;
}

/// A step of training does not wait for what the checks of those before have found, nor for its own, where what it
/// changes is overwritten in place: a step that fails leaves that alone. Who wants results early looks himself.
void Evaluation::look_at_checks(const Plan& plan) {
  defers_ = EarlyResults::of_thread() || (behind_ && !plan.layout->structure->beside);
  plan.device->flags.look(defers_ ? Ticket() : plan.device->compute().last());
}

bool Evaluation::run(const Wanted& wanted, Context& here) try {
  Context& context = wanted.context;
  std::lock_guard lock(context.evaluating);
  if (&context == &here) context.collect_orphans();
  if (wanted.target && wanted.target->ready()) return true;
  if (!collect(wanted)) return false;
  behind_ = wanted.may_be_behind;
  if (order_.empty()) {
    if (!behind_) CpuStream::finish();
    return true;
  }
  make_keys(context, wanted.alone.empty() && !passes_);
  const std::shared_ptr<Plan> found = plan();
  if (found->device) look_at_checks(*found);
  execute(found);
  commit(*found->layout, context, here);
  if (wanted.alone.empty()) context.evaluated_all();
  return !elsewhere_;
} catch (const std::bad_alloc&) {
  throw_no_memory("eval", unknown_bytes);
} catch (const std::length_error&) {  // of a vector: more bytes than there are addresses
  throw_no_memory("eval", unknown_bytes);
}

}  // namespace

bool run_once(const Wanted& wanted, Context& here, std::vector<Array>& missing) {
  Evaluation& evaluation = Evaluation::of_thread();
  if (evaluation.run(wanted, here)) return true;
  missing = std::exchange(evaluation.foreign, {});
  return false;
}

}  // namespace rosin
