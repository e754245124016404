// vmap: walks from what a function gave to its arguments and records each node anew with a last dim. Most ops along
// other dims mean the same there, as the dim is the last one; the rest is said below, kind by kind.
#include <rosin/vmap.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "grad/custom_rules.hpp"
#include "graph/context.hpp"
#include "graph/gather_form.hpp"
#include "graph/handle.hpp"
#include "graph/kinds.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "model/notes.hpp"
#include "ops/add_along.hpp"
#include "ops/in_parts.hpp"
#include "ops/sequence.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

using Sizes = std::vector<int64_t>;

Sizes sizes_of(const Node& node) { return {node.sizes, node.sizes + node.rank}; }

/// The node's sizes with n behind them.
Sizes with_count(const Node& node, int64_t n) {
  Sizes sizes = sizes_of(node);
  sizes.push_back(n);
  if (sizes.size() <= Shape::max_rank) return sizes;
  throw Error(ErrorKind::shape, "vmap: arrays inside may have " + std::to_string(Shape::max_rank - 1) + " dims; " +
                                    std::string(op_name(node)) + " gives " + to_string(node.shape()) +
                                    "; reshape them to fewer");
}

/// x (sizes..., n) with dims of size 1 before the last, so that it has `rank` and that one.
Array lifted(const Array& x, int rank) {
  Sizes sizes;
  for (int d = 0; d + 1 < x.rank(); ++d) sizes.push_back(x.size(d));
  sizes.resize(static_cast<size_t>(rank), 1);
  sizes.push_back(x.size(-1));
  return x.rank() == rank + 1 ? x : reshape(x, sizes);
}

/// What is the same for all, n times.
Array repeated(const Array& x, int64_t n) {
  Sizes sizes;
  for (int d = 0; d < x.rank(); ++d) sizes.push_back(x.size(d));
  sizes.push_back(n);
  return expand(x, Shape(sizes));
}

/// The node once more on these operands (null: a number in the node), with these sizes.
Array recorded(const Node& node, const std::vector<Array>& in, const Sizes& sizes, const Attributes& attributes) {
  std::vector<Node*> nodes;
  for (const Array& x : in) nodes.push_back(x.is_nothing() ? nullptr : x.node());
  return record_again(node, nodes, node.device, Shape(sizes), attributes);
}
Array recorded(const Node& node, const std::vector<Array>& in, const Sizes& sizes) {
  return recorded(node, in, sizes, node.attributes);
}

/// An operand: for all observations, or the same for all.
struct Operand {
  Array value;
  bool is_mapped = false;
};
using Operands = std::vector<Operand>;

/// All with the dim.
std::vector<Array> all_mapped(const Operands& in, int64_t n) {
  std::vector<Array> all;
  for (const Operand& x : in) all.push_back(x.is_mapped ? x.value : repeated(x.value, n));
  return all;
}

/// Dims of size 1 that reductions have left before the last of what is one number an observation: ops on such numbers
/// are recorded with them, as what reads the numbers beside larger arrays needs them.
int kept_dims(const Operands& in) {
  int most = 0;
  for (const Operand& x : in) {
    if (!x.is_mapped) continue;
    const Array from = unreshaped(x.value);
    if (from.rank() > 0 && from.size(-1) == from.count()) most = std::max(most, from.rank() - 1);
  }
  return most;
}

Array elementwise(const Node& node, const Operands& in, int64_t n) {
  const int rank = node.rank == 0 ? kept_dims(in) : node.rank;
  std::vector<Array> all;
  for (const Operand& x : in) all.push_back(x.is_mapped ? lifted(x.value, rank) : x.value);
  Sizes sizes = with_count(node, n);
  if (rank == node.rank) return recorded(node, all, sizes);
  Sizes wide(static_cast<size_t>(rank), 1);
  wide.push_back(n);
  return reshape(recorded(node, all, wide), sizes);
}

/// Ops along stated dims, whose operands all have the new one.
Array along_dims(const Node& node, const Operands& in, int64_t n) {
  return recorded(node, all_mapped(in, n), with_count(node, n));
}

/// A reduction may leave out its last dims (all of them: it is 0-d); before the new one they stay, with size 1.
Array reduction(const Node& node, const Operands& in, int64_t n) {
  const int rank = in[0].value.rank() - 1;
  if (node.rank == rank) return along_dims(node, in, n);
  Sizes kept(node.sizes, node.sizes + node.rank);
  kept.resize(static_cast<size_t>(rank), 1);
  kept.push_back(n);
  return reshape(recorded(node, {in[0].value}, kept), with_count(node, n));
}

Array movement(const Node& node, const Operands& in, int64_t n) {
  const Movement how = node.op->movement;
  if (how == Movement::broadcast) return recorded(node, {lifted(in[0].value, node.rank)}, with_count(node, n));
  if (how == Movement::pad) {
    if (in[1].is_mapped) return {};
    return recorded(node, {in[0].value, in[1].value}, with_count(node, n));
  }
  if (how == Movement::reshape) return reshape(in[0].value, with_count(node, n));
  if (how != Movement::permute) return along_dims(node, in, n);
  auto order = node.attributes.as<PermuteAttributes>();
  order.from[node.rank] = node.rank;
  return recorded(node, {in[0].value}, with_count(node, n), Attributes::of(order));
}

/// (a, ..., n) as (a, ...) with n times as many in the dim before the last.
Array joined(const Array& x) {
  Sizes sizes;
  for (int d = 0; d + 2 < x.rank(); ++d) sizes.push_back(x.size(d));
  sizes.push_back(x.size(-2) * x.size(-1));
  return reshape(x, sizes);
}

/// Indices (shape..., n) as one dim of x (before..., dim, after..., n), the same in all others: for ops that take an
/// index for each element.
Array index_each(const Array& indices, const Sizes& sizes, int dim) {
  const int64_t n = indices.size(-1), each = n == 0 ? 0 : indices.count() / n;
  Sizes line(sizes.size(), 1), full = sizes;
  line[static_cast<size_t>(dim)] = full[static_cast<size_t>(dim)] = each;
  line.back() = full.back() = n;
  return expand(reshape(indices, line), Shape(full));
}

Array gather(const Node& node, const Operands& in, int64_t n) {
  const auto how = node.attributes.as<GatherAttributes>();
  if (sums_weighed(*node.op)) return recorded(node, {in[0].value, in[1].value, in[2].value}, with_count(node, n));
  const bool whole_slices = node.op->operands == 2 && how.along != 1;
  if (!whole_slices) return along_dims(node, in, n);
  if (how.along == slices_in_range) return {};
  if (!in[1].is_mapped) return recorded(node, {in[0].value, in[1].value}, with_count(node, n));
  const Array x = in[0].is_mapped ? in[0].value : repeated(in[0].value, n);
  Sizes sizes;
  for (int d = 0; d < x.rank(); ++d) sizes.push_back(x.size(d));
  const Array indices = index_each(in[1].value, sizes, static_cast<int>(how.dim));
  return reshape(take_along(x, indices, static_cast<int>(how.dim)), with_count(node, n));
}

Array scatter(const Node& node, const Operands& in, int64_t n) {
  if (node.op->scatter == Scatter::add_along) return along_dims(node, in, n);
  if (!in[1].is_mapped) {
    const auto all = [&](const Operand& x) { return x.is_mapped ? x.value : repeated(x.value, n); };
    return recorded(node, {all(in[0]), in[1].value, all(in[2])}, with_count(node, n));
  }
  if (node.op->scatter != Scatter::add) return {};
  const int dim = static_cast<int>(node.attributes.as<DimAttributes>().dim);
  const Sizes sizes = with_count(node, n);
  const Array indices = index_each(in[1].value, sizes, dim);
  const Array updates = in[2].is_mapped ? in[2].value : repeated(in[2].value, n);
  const Array added = add_along(Shape(sizes), indices, reshape(updates, indices.shape()), dim);
  return (in[0].is_mapped ? in[0].value : repeated(in[0].value, n)) + added;
}

Array matmul(const Node& node, const Operands& in, int64_t n) {
  const auto how = node.attributes.as<MatmulAttributes>();
  const Array &a = in[0].value, &b = in[1].value;
  if (!in[0].is_mapped && a.rank() == 2 && b.rank() == 3 && how.transposed[1] == 0) {
    return reshape(recorded(node, {a, joined(b)}, {node.sizes[0], node.sizes[1] * n}), with_count(node, n));
  }
  const auto placed = [&](const Operand& x) { return x.is_mapped ? lifted(x.value, node.rank) : x.value; };
  return recorded(node, {placed(in[0]), placed(in[1])}, with_count(node, n));
}

/// (..., c, m, n) as (..., c*n, m): each observation has channels of its own.
Array as_channels(const Array& x) {
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const Array turned = permute(x, order);
  Sizes sizes;
  for (int d = 0; d + 3 < x.rank(); ++d) sizes.push_back(turned.size(d));
  sizes.push_back(turned.size(-3) * turned.size(-2));
  sizes.push_back(turned.size(-1));
  return reshape(turned, sizes);
}

/// The way back: (..., c*n, m) as (..., c, m, n).
Array from_channels(const Array& y, int64_t n) {
  Sizes sizes;
  for (int d = 0; d + 2 < y.rank(); ++d) sizes.push_back(y.size(d));
  sizes.push_back(n == 0 ? 0 : y.size(-2) / n);
  sizes.push_back(n);
  sizes.push_back(y.size(-1));
  std::vector<int> order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<int>(d));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(reshape(y, sizes), order);
}

/// Images go along as more of a batch; where kernels differ, or make the result, as groups of channels.
Array convolution(const Node& node, const Operands& in, int64_t n) {
  const bool makes_weights = node.op->contraction == Contraction::convolution_weights;
  Sizes sizes = sizes_of(node);
  if (!makes_weights && !in[1].is_mapped) {
    sizes.back() *= n;
    return reshape(recorded(node, {joined(in[0].value), in[1].value}, sizes), with_count(node, n));
  }
  auto window = node.attributes.as<WindowAttributes>();
  if (n == 0 || window.groups * n > std::numeric_limits<int16_t>::max()) return {};
  window.groups = static_cast<int16_t>(window.groups * n);
  const std::vector<Array> all = all_mapped(in, n);
  const std::vector<Array> operands = {as_channels(all[0]), makes_weights ? as_channels(all[1]) : joined(all[1])};
  sizes[sizes.size() - (makes_weights ? 1 : 2)] *= n;
  const Array y = recorded(node, operands, sizes, Attributes::of(window));
  return makes_weights ? reshape(y, with_count(node, n)) : from_channels(y, n);
}

/// Poolings treat the elements of a batch alike.
Array window(const Node& node, const Operands& in, int64_t n) {
  std::vector<Array> all = all_mapped(in, n);
  for (Array& x : all) x = joined(x);
  Sizes sizes = sizes_of(node);
  sizes.back() *= n;
  return reshape(recorded(node, all, sizes), with_count(node, n));
}

/// Sequences of a batch (a, b, c), or one of them (a, b), as a larger batch.
Array more(const Array& x) { return x.rank() == 3 ? x : joined(x); }
Sizes with_more(const Node& node, int64_t n) {
  Sizes sizes = sizes_of(node);
  if (sizes.size() == 2) sizes.push_back(n);
  else sizes.back() *= n;
  return sizes;
}

/// A bias or mask (keys, queries, heads, batch), of `batch` observations' sequences.
Array more_logits(const Operand& x, int64_t batch, int64_t n) {
  const bool once = x.value.size(3) == 1;
  if (!x.is_mapped) return once ? x.value : joined(repeated(x.value, n));
  if (!once || batch == 1) return joined(x.value);
  Sizes sizes;
  for (int d = 0; d < x.value.rank(); ++d) sizes.push_back(x.value.size(d));
  sizes[3] = batch;
  return joined(expand(x.value, Shape(sizes)));
}

/// Observations are more sequences. (What drops weights is recorded in parts.)
Array attention(const Node& node, const Operands& in, int64_t n) {
  const auto how = node.attributes.as<AttentionAttributes>();
  const size_t sequences = in.size() - static_cast<size_t>(how.has_bias + how.has_mask);
  const int rank = in[0].value.rank() - (in[0].is_mapped ? 1 : 0);
  const int64_t batch = rank == 3 ? in[0].value.size(2) : 1;
  std::vector<Array> all;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i >= sequences) all.push_back(more_logits(in[i], batch, n));
    else all.push_back(more(in[i].is_mapped ? in[i].value : repeated(in[i].value, n)));
  }
  return recorded(node, all, with_more(node, n));
}

/// The identities of gradient calls.
Array identity(const Node& node, const Operands& in, int64_t n) {
  if (node.op == &argument_op) return in[0].is_mapped ? in[0].value : repeated(in[0].value, n);
  if (!node.op->name.starts_with("custom_")) return along_dims(node, in, n);
  if (CustomRules::of_thread().find(node.sequence)) {
    throw Error(ErrorKind::argument,
                "vmap: a function with custom_gradient has no gradient around vmap; a gradient call stands around it; "
                "call gradient inside the function");
  }
  return in[0].is_mapped ? in[0].value : repeated(in[0].value, n);
}

Array part(const Node& node, const Operands& in, int64_t n) {
  const auto number = static_cast<int>(node.attributes.as<PartAttributes>().number);
  Node* const call = in[0].value.node();
  if (call->op->kind != Kind::attention) return record_part(call, number, {node.dtype, Shape(with_count(node, n))});
  return reshape(record_part(call, number, {node.dtype, Shape(with_more(node, n))}), with_count(node, n));
}

/// The node for all observations; nothing where its kind has no other way than one after another.
Array batched(const Node& node, const Operands& in, int64_t n) {
  switch (node.op->kind) {
    case Kind::elementwise: return elementwise(node, in, n);
    case Kind::movement: return movement(node, in, n);
    case Kind::gather: return gather(node, in, n);
    case Kind::scatter: return scatter(node, in, n);
    case Kind::contraction:
      return node.op->contraction == Contraction::matmul ? matmul(node, in, n) : convolution(node, in, n);
    case Kind::window: return window(node, in, n);
    case Kind::argument: return identity(node, in, n);
    case Kind::part: return part(node, in, n);
    case Kind::attention: return attention(node, in, n);
    case Kind::reduction: return reduction(node, in, n);
    case Kind::sort:
    case Kind::scan:
    case Kind::routine: return along_dims(node, in, n);
    default: return {};
  }
}

/// One observation after another: the node on slices of its operands.
Array one_by_one(const Node& node, const Operands& in, int64_t n) {
  std::vector<Array> results;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Array> one;
    for (const Operand& x : in) one.push_back(x.is_mapped ? select(x.value, -1, i) : x.value);
    results.push_back(recorded(node, one, sizes_of(node)));
  }
  return stack(results, -1);
}

/// What nodes recorded since `start` become for n observations at once.
class Batching {
 public:
  Batching(int64_t count, uint64_t start) : count_(count), start_(start) {}

  /// `all` (..., n) is what stands for the node.
  void set(const Array& one, const Array& all) {
    kept_.push_back(one);
    values_.emplace(one.node(), all);
  }
  /// The value of a node for all observations; nothing where it is the same for all.
  Array value_of(Node* root);

 private:
  struct Open {
    Node* node;
    size_t next = 0;
  };
  bool is_new(const Node& node) const { return node.recorder == Context::current_or_null() && node.sequence > start_; }
  Array made(const Node& node) const;

  int64_t count_;
  uint64_t start_;
  std::unordered_map<const Node*, Array> values_;
  std::vector<Array> kept_;  // so that the nodes which `values_` knows live
};

Array Batching::value_of(Node* root) {
  if (!is_new(*root)) return {};
  std::vector<Open> open{{root}};
  while (!open.empty()) {
    Open& top = open.back();
    Node* const node = top.node;
    const std::span<Node* const> in = node->arrays();
    const bool is_known = values_.contains(node);
    while (!is_known && top.next < in.size()) {
      Node* const operand = in[top.next];
      if (operand && is_new(*operand) && !values_.contains(operand)) break;
      ++top.next;
    }
    if (!is_known && top.next < in.size()) {
      open.push_back({in[top.next]});
      continue;
    }
    if (!is_known) set(handle_of(node), made(*node));
    open.pop_back();
  }
  return values_.at(root);
}

/// Nothing where no operand differs from observation to observation.
Array Batching::made(const Node& node) const {
  Operands in;
  bool any = false;
  for (Node* operand : node.arrays()) {
    const auto known = values_.find(operand);
    const bool is_mapped = known != values_.end() && !known->second.is_nothing();
    any = any || is_mapped;
    in.push_back({is_mapped ? known->second : operand ? handle_of(operand) : Array(), is_mapped});
  }
  if (!any) return {};
  const DeviceScope scope(node);
  if (count_ == 0) return zeros(Shape(with_count(node, 0)), node.dtype);
  const Array all = batched(node, in, count_);
  return all.is_nothing() ? one_by_one(node, in, count_) : all;
}

[[noreturn]] void refuse_reading() {
  throw Error(ErrorKind::argument,
              "vmap: the function must not look at values, which are those of many observations, nor move arrays to "
              "another device; got one that does, or records more than 20000 ops; use where(condition, a, b)");
}

void check_observations(const Array& x, int64_t count) {
  if (!x.is_nothing() && x.rank() > 0 && (count < 0 || x.size(-1) == count)) return;
  throw Error(ErrorKind::shape, "vmap: the arrays must have a last dim, of one size; got " +
                                    (x.is_nothing() ? "nothing" : to_string(x.shape())) +
                                    (count < 0 ? "" : " beside " + std::to_string(count) + " observations") +
                                    "; capture what is the same for all");
}

/// An array of x's type and device without its last dim, and without a value.
Array one_of(const Array& x) {
  const DeviceScope scope(*x.node());
  Sizes sizes;
  for (int d = 0; d + 1 < x.rank(); ++d) sizes.push_back(x.size(d));
  return argument(expand(zeros(Shape{}, x.dtype()), Shape(sizes)));
}

/// What is recorded of one observation has no value: while it stands, no op is evaluated at its call.
class Unwatched {
 public:
  Unwatched() { context_.watched = false; }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
  ~Unwatched() { context_.watched = before_; }

 private:
  Context& context_ = Context::current();
  const bool before_ = context_.watched;
};

}  // namespace

struct detail::VmapCall::State {
  State() { Context::current().check_reads = check_all; }
  ~State() { close(); }

  /// From now on values may be read.
  void close() {
    if (!open) return;
    open = false;
    innermost = outer;
    if (!outer) Context::current().check_reads = nullptr;
  }
  void check() const {
    for (const auto& [one, all] : arguments) {
      if (one.node()->state.load(std::memory_order_relaxed) != NodeState::pending) refuse_reading();
    }
  }
  static void check_all() {
    for (const State* call = innermost; call; call = call->outer) call->check();
  }

  static thread_local State* innermost;
  bool open = true;
  State* outer = std::exchange(innermost, this);
  Unwatched unwatched;
  uint64_t start = Context::current().sequence();
  int64_t count = -1;
  std::vector<std::pair<Array, Array>> arguments;  // one observation, and all
  SuspendedNotes notes;
  InParts parts{InParts::dropping};  // whose numbers are drawn once, for all observations
  StepByStep steps;
};

constinit thread_local detail::VmapCall::State* detail::VmapCall::State::innermost = nullptr;

detail::VmapCall::VmapCall() : state_(new State) {}
detail::VmapCall::~VmapCall() { delete state_; }

Array detail::VmapCall::open(const Array& x) {
  check_observations(x, state_->count);
  state_->count = x.size(-1);
  state_->arguments.emplace_back(one_of(x), x);
  return state_->arguments.back().first;
}

std::vector<Array> detail::VmapCall::mapped(const std::vector<Array>& y) {
  state_->check();
  state_->close();
  Batching batching(state_->count, state_->start);
  for (const auto& [one, all] : state_->arguments) batching.set(one, all);
  std::vector<Array> results;
  for (const Array& part : y) {
    const Array all = part.is_nothing() ? part : batching.value_of(part.node());
    results.push_back(!all.is_nothing() || part.is_nothing() ? all : repeated(part, state_->count));
  }
  return results;
}

Array detail::VmapCall::mapped(const Array& y) { return mapped(std::vector<Array>{y})[0]; }

}  // namespace rosin
