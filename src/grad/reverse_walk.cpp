// The walk: collect what the loss depends on, find out what reaches an argument, then ask each op for its gradient.
#include "grad/reverse_walk.hpp"

#include <algorithm>
#include <utility>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"

namespace rosin {

void ReverseWalk::clear() {
  steps_.clear();
  found_.clear();
  leaves_.clear();
}

namespace {

[[noreturn]] void refuse_foreign(const Node& node) {
  throw Error(
      ErrorKind::argument,
      "gradient: the thread of the call must record all that the loss depends on; another thread has computed " +
          std::string(node.op->name) + " " + to_string(node.shape()) +
          " from the call's arrays, so its part of the gradient is unknown; compute it on this thread, or give "
          "the other thread stop_gradient(x)");
}

}  // namespace

/// Nodes recorded since the call began that the loss depends on. Marks belong to whoever holds the lock.
void ReverseWalk::collect(Context& context, Node* loss, uint64_t first) {
  std::lock_guard lock(context.evaluating);
  const uint32_t stamp = context.fresh_stamp();
  const auto visit = [&](Node* node, bool constant) {
    if (node->recorder != &context || node->sequence < first) {
      if (!constant && node->recorder != &context && context.came_from_here(*node)) refuse_foreign(*node);
      leaves_.push_back(node);
      return;
    }
    if (node->mark == stamp) return;
    node->mark = stamp;
    found_.push_back(node);
  };
  visit(loss, false);
  for (size_t i = 0; i < found_.size(); ++i) {
    Node* node = found_[i];
    for (Node* operand : node->in) {
      if (operand) visit(operand, !node->op->gradient);
    }
  }
  std::sort(found_.begin(), found_.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  steps_.resize(found_.size());
  for (size_t i = 0; i < found_.size(); ++i) found_[i]->slot = static_cast<uint32_t>(i);
  for (size_t i = 0; i < found_.size(); ++i) {
    Step& step = steps_[i];
    step.node = found_[i];
    step.reaches = false;
    for (int k = 0; k < Node::max_operands; ++k) {
      const Node* operand = step.node->in[k];
      step.in[k] =
          operand && operand->recorder == &context && operand->mark == stamp ? static_cast<int32_t>(operand->slot) : -1;
    }
  }
}

bool ReverseWalk::run(Context& context, Node* loss, uint64_t first) {
  clear();
  collect(context, loss, first);
  for (Step& step : steps_) {
    step.reaches = step.node->op == &argument_op && step.node->sequence >= first;
    for (int32_t operand : step.in) {
      if (operand >= 0 && (is_float(step.node->dtype) || is_complex(step.node->dtype)))
        step.reaches = step.reaches || steps_[static_cast<size_t>(operand)].reaches;
    }
  }
  if (steps_.empty() || !steps_.back().reaches) return false;
  const DeviceScope scope(*loss);
  steps_.back().gradient = 1.0;
  for (size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].reaches && !steps_[i].gradient.is_nothing()) back(steps_[i]);
  }
  return true;
}

/// What an operand of the node gets of the gradient, in the operand's shape and type: broadcast dims are summed. A
/// number stays one, which stands for any shape.
Array ReverseWalk::fitted(Array g, const Node& node, const Node& operand) {
  if (is_scalar(*g.node())) {
    const int64_t count = operand.count(), results = node.op->kind == Kind::elementwise ? node.count() : count;
    return results == count ? g : g * (static_cast<double>(results) / static_cast<double>(count));
  }
  if (!g.node()->has_sizes_of(operand)) {
    const Shape from = g.shape(), to = operand.shape();
    int64_t sizes[Shape::max_rank];
    const int rank = std::min(from.rank(), to.rank());
    for (int d = 0; d < rank; ++d) sizes[d] = to[d] == 1 ? 1 : from[d];
    g = sum_to(g, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank))));
    if (!g.node()->has_sizes_of(operand)) g = expand(g, to);
  }
  if (g.node()->dtype != operand.dtype && !operand.weak && !g.node()->weak) g = cast(g, operand.dtype);
  return g;
}

/// Records all nodes of a checkpoint region once more, so that the forward pass need not keep their values.
void ReverseWalk::record_region_again(uint32_t region) {
  for (Step& step : steps_) {
    if (step.node->region != region) continue;
    std::array<Node*, Node::max_operands> in = {};
    for (int k = 0; k < Node::max_operands; ++k) {
      const int32_t operand = step.in[k];
      const bool inside = operand >= 0 && !steps_[static_cast<size_t>(operand)].again.is_nothing();
      in[static_cast<size_t>(k)] = inside ? steps_[static_cast<size_t>(operand)].again.node() : step.node->in[k];
    }
    step.again = record_again(*step.node, in, step.node->device);
  }
}

namespace {

/// Whether the op's rule can do with a number for its gradient. (Beside integers a number would become Float32.)
bool takes_number(const Node& node) {
  const auto alike = [&](const Node* operand) { return !operand || operand->dtype == node.dtype; };
  return node.op->takes_number && std::all_of(std::begin(node.in), std::end(node.in), alike);
}

}  // namespace

void ReverseWalk::back(Step& step) {
  const Op& op = *step.node->op;
  if (!op.gradient) return;
  const DeviceScope scope(*step.node);
  if (is_scalar(*step.gradient.node()) && !takes_number(*step.node))
    step.gradient = expand(cast(step.gradient, step.node->dtype), step.node->shape());
  if (step.node->region != 0 && step.again.is_nothing()) record_region_again(step.node->region);
  Backward backward(step.again.is_nothing() ? step.node : step.again.node(), step.gradient);
  for (int k = 0; k < Node::max_operands; ++k) {
    if (step.in[k] >= 0 && steps_[static_cast<size_t>(step.in[k])].reaches) backward.needs_ |= 1u << k;
  }
  if (backward.needs_ == 0) return;
  op.gradient(backward);
  for (int k = 0; k < Node::max_operands; ++k) {
    if (backward.given_[k].is_nothing()) continue;
    Array& sum = steps_[static_cast<size_t>(step.in[k])].gradient;
    Array g = fitted(std::move(backward.given_[k]), *step.node, *step.node->in[k]);
    sum = sum.is_nothing() ? std::move(g) : sum + g;
  }
  step.again = Array();
  if (&op != &argument_op) step.gradient = Array();
}

Array ReverseWalk::gradient_of(const Node* argument) const {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), argument, [](const Step& step, const Node* node) {
    return step.node->sequence < node->sequence;
  });
  return at != steps_.end() && at->node == argument ? at->gradient : Array();
}

bool ReverseWalk::reaches_leaf(const Node* leaf) const {
  return std::find(leaves_.begin(), leaves_.end(), leaf) != leaves_.end();
}

}  // namespace rosin
