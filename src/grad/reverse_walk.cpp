// The walk: collect what the loss depends on, find out what reaches an argument, then ask each op for its gradient.
#include "grad/reverse_walk.hpp"

#include <algorithm>
#include <utility>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"

namespace rosin {

void ReverseWalk::clear() {
  steps_.clear();
  places_.clear();
  given_.clear();
  slopes_of_parts_.clear();
  cuts_.clear();
  results_.clear();
  slopes_.clear();
  found_.clear();
  leaves_.clear();
}

namespace {

[[noreturn]] void refuse_foreign(const Node& node) {
  throw Error(
      ErrorKind::argument,
      "gradient: the thread of the call must record all that the loss depends on; another thread has computed " +
          std::string(op_name(node)) + " " + to_string(node.shape()) +
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
    for (Node* operand : node->arrays()) {
      if (operand) visit(operand, !node->op->gradient);
    }
  }
  std::sort(found_.begin(), found_.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  for (size_t i = 0; i < found_.size(); ++i) found_[i]->slot = static_cast<uint32_t>(i);
  list_operands(context, stamp);
}

/// The steps of what was found, in order; what carries the stamp is one of them.
void ReverseWalk::list_operands(const Context& context, uint32_t stamp) {
  steps_.resize(found_.size());
  size_t most = 0;
  for (size_t i = 0; i < found_.size(); ++i) {
    Step& step = steps_[i];
    step.node = found_[i];
    step.reaches = false;
    step.cuts = JoinedCuts::none;
    step.first = places_.size();
    for (const Node* operand : step.node->arrays()) {
      const bool is_step = operand && operand->recorder == &context && operand->mark == stamp;
      places_.push_back(is_step ? static_cast<int32_t>(operand->slot) : -1);
    }
    step.count = places_.size() - step.first;
    most = std::max(most, step.count);
  }
  needs_.resize(most);
  given_.resize(most);
}

bool ReverseWalk::run(Context& context, Node* loss, uint64_t first) {
  clear();
  collect(context, loss, first);
  for (Step& step : steps_) {
    step.reaches = step.node->op == &argument_op && step.node->sequence >= first;
    const Op& op = *step.node->op;
    const bool flows =
        op.results > 1 ? op.gradient != nullptr : is_float(step.node->dtype) || is_complex(step.node->dtype);
    if (!flows) continue;
    for (const int32_t operand : operands(step)) step.reaches = step.reaches || reaches(operand);
  }
  if (steps_.empty() || !steps_.back().reaches) return false;
  const DeviceScope scope(*loss);
  const WalkOfScopes types;
  steps_.back().gradient = 1.0;
  for (size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].cuts != JoinedCuts::none) add_cuts(steps_[i]);
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
    if (step.node->recorded_in.region() != region) continue;
    const std::span<Node* const> in = step.node->arrays();
    again_.assign(in.begin(), in.end());
    for (size_t k = 0; k < step.count; ++k) {
      const int32_t operand = operands(step)[k];
      const bool inside = operand >= 0 && !steps_[static_cast<size_t>(operand)].again.is_nothing();
      if (inside) again_[k] = steps_[static_cast<size_t>(operand)].again.node();
    }
    step.again = record_again(*step.node, again_, step.node->device);
  }
}

namespace {

/// Whether the op's rule can do with a number for its gradient. (Beside integers a number would become Float32.)
bool takes_number(const Node& node) {
  const auto alike = [&](const Node* operand) { return !operand || operand->dtype == node.dtype; };
  const std::span<Node* const> in = node.arrays();
  return node.op->takes_number && std::all_of(in.begin(), in.end(), alike);
}

}  // namespace

/// The gradient by one of several results waits for those by the others.
void ReverseWalk::hand_over(Step& part) {
  const int32_t call = operands(part)[0];
  const auto number = static_cast<int32_t>(part.node->attributes.as<PartAttributes>().number);
  steps_[static_cast<size_t>(call)].gradient = part.gradient;
  slopes_of_parts_.push_back({call, number, std::exchange(part.gradient, {})});
}

/// Fills results_ and slopes_ for an op of several results: what was recorded of them, and what came of the gradient.
void ReverseWalk::find_results(const Step& step) {
  const auto place = static_cast<int32_t>(&step - steps_.data());
  const auto count = static_cast<size_t>(step.node->op->results);
  results_.assign(count, {});
  slopes_.assign(count, {});
  for (const Step* part = &step + 1; part < steps_.data() + steps_.size(); ++part) {
    if (part->node->sequence > step.node->sequence + count) break;  // they are recorded at once
    if (part->node->op != &part_op || operands(*part)[0] != place) continue;
    Array& result = results_[static_cast<size_t>(part->node->attributes.as<PartAttributes>().number)];
    result = part->again;
    if (result.is_nothing()) result = Backward::handle(part->node);
  }
  std::erase_if(slopes_of_parts_, [&](Slope& slope) {
    if (slope.step != place) return false;
    Array& sum = slopes_[static_cast<size_t>(slope.number)];
    sum = sum.is_nothing() ? std::move(slope.gradient) : sum + slope.gradient;
    return true;
  });
}

/// The gradient by a slice waits for those by other slices of its operand; whether it does.
bool ReverseWalk::defer_cut(const Step& step) {
  if (step.node->op->movement != Movement::slice || !reaches(operands(step)[0])) return false;
  const auto cut = step.node->attributes.as<SliceAttributes>();
  const int dim = static_cast<int>(cut.dim);
  if (cut.step != 1 || step.gradient.size(dim) == 0) return false;
  Step& whole = steps_[static_cast<size_t>(operands(step)[0])];
  whole.cuts = cuts_.add(whole.cuts, dim, cut.start, step.gradient);
  return true;
}

/// Adds what waited for the step.
void ReverseWalk::add_cuts(Step& step) {
  const DeviceScope scope(*step.node);
  Array joined = cuts_.take(std::exchange(step.cuts, JoinedCuts::none), step.node->shape());
  step.gradient = step.gradient.is_nothing() ? std::move(joined) : step.gradient + joined;
}

void ReverseWalk::back(Step& step) {
  const Op& op = *step.node->op;
  if (!op.gradient) return;
  const DeviceScope scope(*step.node);
  const detail::MathModeScope mode(step.node->recorded_in.mode());
  if (op.results == 1 && is_scalar(*step.gradient.node()) && !takes_number(*step.node))
    step.gradient = expand(cast(step.gradient, step.node->dtype), step.node->shape());
  if (op.kind == Kind::part) return hand_over(step);
  if (defer_cut(step)) {
    step.gradient = Array();
    return;
  }
  const uint32_t region = step.node->recorded_in.region();
  if (region != 0 && step.again.is_nothing()) record_region_again(region);
  if (!ask(step)) return;
  for (size_t k = 0; k < step.count; ++k) {
    if (given_[k].is_nothing()) continue;
    Array& sum = steps_[static_cast<size_t>(operands(step)[k])].gradient;
    Array g = fitted(std::move(given_[k]), *step.node, *step.node->arrays()[k]);
    sum = sum.is_nothing() ? std::move(g) : sum + g;
  }
  step.again = Array();
  if (&op != &argument_op) step.gradient = Array();
}

/// Has the op's rule fill given_; false where no operand needs a gradient.
bool ReverseWalk::ask(Step& step) {
  bool any = false;
  for (size_t k = 0; k < step.count; ++k) {
    needs_[k] = reaches(operands(step)[k]);
    any = any || needs_[k];
  }
  if (!any) return false;
  const std::span<Array> given(given_.data(), step.count);
  Backward backward(step.again.is_nothing() ? step.node : step.again.node(), step.gradient, needs_.data(), given);
  if (step.node->op->results > 1) {
    find_results(step);
    backward.results_ = results_;
    backward.slopes_ = slopes_;
  }
  step.node->op->gradient(backward);
  return true;
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
