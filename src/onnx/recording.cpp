// Recording a function for a file: see recording.hpp.
#include "onnx/recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <rosin/error.hpp>
#include <rosin/index.hpp>

#include "graph/context.hpp"
#include "graph/handle.hpp"
#include "graph/leaf.hpp"
#include "ops/in_parts.hpp"
#include "ops/sequence.hpp"
#include "ops/shapes.hpp"

namespace rosin::onnx {
namespace {

constexpr std::string_view own_name = "onnx::save";

[[noreturn]] void refuse_batch(const std::string& what) {
  refuse(ErrorKind::argument, own_name, "a function must record the same for every batch size", what,
         "save it for the batch of the example with {.symbolic_batch = false}");
}

/// Of the op at two batch sizes; the same node twice where there is only one.
struct Pair {
  Node* first;
  Node* second;
};

/// The two batch sizes; equal where none is left open.
struct Batches {
  int64_t first = 1, second = 1;
  bool open() const noexcept { return first != second; }
};

/// The size that is `a` at one batch and `b` at the other.
Size size_of_both(int64_t a, int64_t b, const Batches& batches, const Node& node) {
  if (a == b) return {0, a};
  const int64_t step = batches.second - batches.first;
  if (!batches.open() || (b - a) % step != 0) {
    refuse_batch(std::to_string(a) + " and " + std::to_string(b) + " in " + std::string(op_name(node)));
  }
  const int64_t factor = (b - a) / step;
  return {factor, a - factor * batches.first};
}

/// Goes from the results to what they are made of.
class Walk {
 public:
  Walk(uint64_t start, const Batches& batches, Recording& recording)
      : start_(start), batches_(batches), recording_(recording) {}

  void input(Pair input, int number) { inputs_.emplace(input.first, number); }
  int value_of(Pair root);

 private:
  struct Open {
    Pair pair;
    size_t next = 0;
  };
  bool is_source(const Node& node) const {
    return node.op == &leaf_op || node.op == &scalar_op || node.recorder != Context::current_or_null() ||
           node.sequence <= start_;
  }
  std::vector<Pair> operands(const Pair& pair) const;
  void check(const Pair& pair) const;
  void add(const Pair& pair);
  void add_source(const Pair& pair, RecordedValue& value);
  void add_op(const Pair& pair, RecordedValue& value);
  Operand operand_at(const Pair& pair, int position);
  Operand batch_number(const Pair& pair, double a, double b);

  uint64_t start_;
  Batches batches_;
  Recording& recording_;
  std::unordered_map<const Node*, int> inputs_, known_;
};

bool is_draw(const Op& op) { return op.kind == Kind::draw || op.kind == Kind::random; }
/// How many operands come first that a file does not have: a draw's key and counter, as it draws anew.
int hidden_operands(const Op& op) { return is_draw(op) ? 2 : 0; }

/// Ops that stand for their operand 0, or say of which operand they are a function.
int only_operand(const Node& node) {
  if (node.op->kind != Kind::argument && node.op->kind != Kind::transfer) return -1;
  return node.op->name == "softmax" || node.op->name == "logsoftmax" ? 1 : 0;
}

std::vector<Pair> Walk::operands(const Pair& pair) const {
  std::vector<Pair> list;
  if (is_source(*pair.first) || inputs_.contains(pair.first)) return list;
  const std::span<Node* const> first = pair.first->arrays(), second = pair.second->arrays();
  const int only = only_operand(*pair.first);
  for (auto i = static_cast<size_t>(hidden_operands(*pair.first->op)); i < first.size(); ++i) {
    if (first[i] && (only < 0 || only == static_cast<int>(i))) list.push_back({first[i], second[i]});
  }
  return list;
}

void Walk::check(const Pair& pair) const {
  const Node &a = *pair.first, &b = *pair.second;
  if (inputs_.contains(&a)) return;
  if (is_source(a) != is_source(b) || a.dtype != b.dtype || a.rank != b.rank || (!is_source(a) && a.op != b.op) ||
      a.arrays().size() != b.arrays().size()) {
    refuse_batch(std::string(op_name(a)) + " at one, " + std::string(op_name(b)) + " at another");
  }
  if (!is_source(a) && a.state.load(std::memory_order_relaxed) != NodeState::pending) {
    refuse(ErrorKind::argument, own_name, "the function must not read values, nor record more than 20000 ops",
           "a value of " + std::string(op_name(a)) + " that was computed meanwhile",
           "save the part of it that computes without looking at values");
  }
}

int Walk::value_of(Pair root) {
  std::vector<Open> open{{root}};
  while (!open.empty()) {
    Open& top = open.back();
    if (known_.contains(top.pair.first)) {
      open.pop_back();
      continue;
    }
    if (top.next == 0) check(top.pair);
    const std::vector<Pair> list = operands(top.pair);
    if (top.next < list.size()) {
      open.push_back({list[top.next++]});
      continue;
    }
    add(top.pair);
    open.pop_back();
  }
  return known_.at(root.first);
}

void Walk::add(const Pair& pair) {
  RecordedValue value;
  value.type = pair.first->dtype;
  for (int d = 0; d < pair.first->rank; ++d) {
    value.sizes.push_back(size_of_both(pair.first->sizes[d], pair.second->sizes[d], batches_, *pair.first));
    value.varies |= !value.sizes.back().is_fixed();
  }
  const auto input = inputs_.find(pair.first);
  if (input != inputs_.end()) {
    value.input = input->second;
    value.varies = true;
    recording_.inputs[static_cast<size_t>(value.input)] = static_cast<int>(recording_.values.size());
  } else if (is_source(*pair.first)) {
    add_source(pair, value);
  } else {
    add_op(pair, value);
  }
  known_.emplace(pair.first, static_cast<int>(recording_.values.size()));
  recording_.values.push_back(std::move(value));
}

/// Whether two arrays that the function made hold the same; of those that were there before, the array itself tells.
bool are_same(const Node& a, const Node& b) {
  if (&a == &b) return true;
  if (is_scalar(a) && is_scalar(b))
    return a.attributes.word(0) == b.attributes.word(0) && a.attributes.word(1) == b.attributes.word(1);
  if (a.op != &leaf_op || b.op != &leaf_op || a.device != 0 || b.device != 0 || a.count() != b.count()) return false;
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.count()) * size_of(a.dtype)) == 0;
}

void Walk::add_source(const Pair& pair, RecordedValue& value) {
  if (value.varies || !are_same(*pair.first, *pair.second)) {
    refuse_batch("values that the function works out from it, of " + to_string(pair.first->shape()));
  }
  value.value = handle_of(pair.first);
}

bool is_whole(double x) { return std::abs(x) < 0x1p53 && x == std::floor(x); }
bool are_near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(a); }

/// A size, one over a size, or a multiple of the batch or of one over it.
Operand Walk::batch_number(const Pair& pair, double a, double b) {
  const double one_by_a = std::round(1 / a), one_by_b = std::round(1 / b);
  const auto first = static_cast<double>(batches_.first), second = static_cast<double>(batches_.second);
  const auto size = [&](double x, double y) {
    return size_of_both(static_cast<int64_t>(x), static_cast<int64_t>(y), batches_, *pair.first);
  };
  RecordedValue value;
  if (is_whole(a) && is_whole(b)) value.number = {size(a, b), 1, false};
  else if (are_near(a * one_by_a, 1) && are_near(b * one_by_b, 1)) value.number = {size(one_by_a, one_by_b), 1, true};
  else if (are_near(a * first, b * second)) value.number = {{1, 0}, a * first, true};
  else if (are_near(a / first, b / second)) value.number = {{1, 0}, a / first, false};
  else refuse_batch("a number of " + std::string(op_name(*pair.first)) + " that follows from it");
  value.type = Float64;
  value.varies = true;
  recording_.values.push_back(std::move(value));
  return {static_cast<int>(recording_.values.size()) - 1, {}};
}

Operand Walk::operand_at(const Pair& pair, int position) {
  if (position < Node::max_positions && (pair.first->scalars >> position & 1) != 0) {
    const ScalarValue &a = pair.first->number(position), &b = pair.second->number(position);
    if (std::memcmp(&a, &b, sizeof a) == 0) return {-1, a};
    return batch_number(pair, a.real, b.real);
  }
  return {known_.at(pair.first->arrays()[static_cast<size_t>(position)]), {}};
}

void Walk::add_op(const Pair& pair, RecordedValue& value) {
  const Node& node = *pair.first;
  value.op = node.op;
  value.compute = node.compute;
  const int only = only_operand(node);
  value.varies |= is_draw(*node.op);
  for (int i = hidden_operands(*node.op); i < node.operand_count(); ++i) {
    if (only < 0 || only == i) value.operands.push_back(operand_at(pair, i));
  }
  for (const Operand& operand : value.operands) {
    value.varies |= operand.value >= 0 && recording_.values[static_cast<size_t>(operand.value)].varies;
  }
  if (!value.varies) value.value = handle_of(pair.first);
  if (node.op->kind == Kind::elementwise) return;
  value.attributes = node.attributes;
  if (node.op->movement == Movement::slice || node.op->movement == Movement::pad) {
    for (int i = 0; i < 3; ++i) {
      const auto a = static_cast<int64_t>(node.attributes.word(i));
      value.words.push_back(size_of_both(a, static_cast<int64_t>(pair.second->attributes.word(i)), batches_, node));
    }
  } else if (std::memcmp(&node.attributes, &pair.second->attributes, sizeof(Attributes)) != 0) {
    refuse_batch("a setting of " + std::string(op_name(node)) + " that follows from it");
  }
}

/// The last size of the first input that has two dims, or else of the first; -1: none.
int64_t batch_of(std::span<const NamedInput> inputs) {
  for (const int rank : {2, 1}) {
    for (const NamedInput& input : inputs) {
      if (input.value.rank() >= rank) return input.value.size(-1);
    }
  }
  return -1;
}

bool has_batch(const Array& x, int64_t batch) { return x.rank() > 0 && x.size(-1) == batch; }

/// x with so many observations: its own over and over.
Array with_batch(const Array& x, int64_t count) {
  std::vector<int32_t> indices(static_cast<size_t>(count));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(static_cast<int64_t>(i) % x.size(-1));
  return gather(x, Array(indices, {count}), -1);
}

struct Examples {
  Arrays first, second;
  Batches batches;
  std::vector<bool> is_batched;
};

Examples examples_of(std::span<const NamedInput> inputs, bool symbolic_batch) {
  Examples made;
  const int64_t batch = symbolic_batch ? batch_of(inputs) : -1;
  if (batch > 0) made.batches = batch == 1 ? Batches{2, 3} : Batches{batch, batch + 1};
  for (const NamedInput& input : inputs) {
    const bool batched = batch > 0 && has_batch(input.value, batch);
    made.is_batched.push_back(batched);
    made.first.push_back(batched ? with_batch(input.value, made.batches.first) : input.value);
    made.second.push_back(batched ? with_batch(input.value, made.batches.second) : input.value);
  }
  return made;
}

Arrays called(const detail::RecordedFunction& function, const Arrays& inputs) {
  const StepByStep steps(StepByStep::in_gradients);  // files have what is done forwards, not its gradient
  Arrays results = function.call(function.object, inputs);
  if (results.empty() || std::any_of(results.begin(), results.end(), [](const Array& y) { return y.is_nothing(); })) {
    refuse(ErrorKind::argument, own_name, "the function must give arrays", "nothing", "return what it computes");
  }
  return results;
}

void check_inputs(std::span<const NamedInput> inputs) {
  const Context& context = Context::current();
  if (context.in_gradient() || context.watched) {
    refuse(ErrorKind::argument, own_name, "a function is recorded as it infers, op by op",
           context.watched ? "a thread that evaluates each op at once" : "a call inside a gradient call",
           "save it elsewhere");
  }
  if (inputs.empty()) {
    refuse(ErrorKind::argument, own_name, "there must be an input", "none",
           "give an example of each: {{\"input\", x}}");
  }
  for (const NamedInput& input : inputs) {
    if (!input.value.is_nothing()) continue;
    refuse(ErrorKind::argument, own_name, "every input needs an example", "nothing for " + std::string(input.name),
           "give an array of its type and sizes");
  }
}

}  // namespace

Recording record_function(const detail::RecordedFunction& function, std::span<const NamedInput> inputs,
                          bool symbolic_batch) {
  check_inputs(inputs);
  const InParts parts;
  const Examples examples = examples_of(inputs, symbolic_batch);
  Recording recording;
  recording.inputs.assign(inputs.size(), -1);
  Walk walk(Context::current().sequence(), examples.batches, recording);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Node *first = examples.first[i].node(), *second = examples.second[i].node();
    walk.input({first, second}, static_cast<int>(i));
    std::vector<Size> sizes;
    for (int d = 0; d < first->rank; ++d) {
      sizes.push_back(size_of_both(first->sizes[d], second->sizes[d], examples.batches, *first));
    }
    recording.input_sizes.push_back(std::move(sizes));
    if (recording.batch_input < 0 && examples.is_batched[i]) recording.batch_input = static_cast<int>(i);
  }
  const Arrays first = called(function, examples.first);
  const Arrays second = examples.batches.open() ? called(function, examples.second) : first;
  if (first.size() != second.size()) refuse_batch("other numbers of results");
  for (size_t i = 0; i < first.size(); ++i) {
    recording.outputs.push_back(walk.value_of({first[i].node(), second[i].node()}));
  }
  return recording;
}

}  // namespace rosin::onnx
