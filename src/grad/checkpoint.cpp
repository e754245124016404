// Checkpoint regions are a mark on nodes; rules of users are kept by the context until the outermost gradient call
// ends.
#include <rosin/gradient_rules.hpp>

#include <string>

#include <rosin/error.hpp>
#include <rosin/free_list.hpp>
#include <rosin/grad.hpp>

#include "grad/custom_rules.hpp"
#include "graph/context.hpp"
#include "graph/record.hpp"

namespace rosin {

detail::CheckpointRegion::CheckpointRegion() : outer_(Context::current().recorded_in.region()) {
  Context& context = Context::current();
  if (outer_ != 0) return;  // a region inside another is part of it
  context.recorded_in = context.recorded_in.with(context.fresh_region());
}

detail::CheckpointRegion::~CheckpointRegion() {
  Context& context = Context::current();
  context.recorded_in = context.recorded_in.with(outer_);
}

namespace {

/// What a user's rule gives must fit its input; only the real type of another precision is converted.
void check_rule(int i, const Array& g, const Node& input) {
  if (g.is_nothing()) return;
  const std::string which = "custom_gradient: the gradient of input " + std::to_string(i) + " must have its ";
  if (!g.node()->has_sizes_of(input)) {
    throw Error(ErrorKind::shape, which + "shape " + to_string(input.shape()) + "; got " + to_string(g.shape()) +
                                      "; reduce it with sum_to, or repeat it with expand");
  }
  if (is_complex(g.dtype()) && !is_complex(input.dtype)) {
    throw Error(ErrorKind::dtype, which + "type " + to_string(input.dtype) + "; got " + to_string(g.dtype()) +
                                      "; give the real part: real(g)");
  }
}

/// The identity of operand 0; the gradient of the others is the user's rule.
const Op& custom_op = []() -> const Op& {
  Op op;
  op.name = "custom_gradient";
  op.kind = Kind::argument;
  op.operands = Op::any;
  op.doc = "the identity, with a gradient that the user states";
  op.gradient = [](Backward& b) {
    const detail::CustomRule* rule = CustomRules::of_thread().find(b.node().sequence);
    if (!rule) return;
    const std::vector<Array> gradients = (*rule)(b.gradient);
    const int inputs = b.operands() - 1;
    if (static_cast<int>(gradients.size()) != inputs) {
      throw Error(ErrorKind::argument, "custom_gradient: the rule must give one gradient for each input; got " +
                                           std::to_string(gradients.size()) + " for " + std::to_string(inputs) +
                                           " inputs; use an empty Array where there is none");
    }
    for (int i = 0; i < inputs; ++i) {
      check_rule(i, gradients[static_cast<size_t>(i)], *b.node().arrays()[static_cast<size_t>(i) + 1]);
      b.give(i + 1, gradients[static_cast<size_t>(i)]);
    }
  };
  return *register_op(op);
}();

}  // namespace

CustomRules& CustomRules::of_thread() {
  static thread_local CustomRules rules;
  return rules;
}

void CustomRules::add(uint64_t sequence, detail::CustomRule rule) { rules_.emplace_back(sequence, std::move(rule)); }

const detail::CustomRule* CustomRules::find(uint64_t sequence) const {
  for (const auto& [at, rule] : rules_) {
    if (at == sequence) return &rule;
  }
  return nullptr;
}

Array detail::with_rule(const Array& value, std::span<const Array> inputs, detail::CustomRule rule) {
  if (inputs.empty()) {
    throw Error(ErrorKind::argument,
                "custom_gradient: there must be an input; got none; name the arrays of which the value was computed, "
                "or write stop_gradient(value)");
  }
  require(custom_op, value);
  if (!in_gradient()) return value;
  const Array constant = stop_gradient(value);
  std::vector<const Array*, detail::FreeListAllocator<const Array*>> operands{&constant};
  for (const Array& input : inputs) operands.push_back(&input);
  Context& context = Context::current();
  const RecordedIn here = context.recorded_in;
  context.recorded_in = here.with(0u);  // a rule belongs to the node recorded now
  Array made = record(custom_op, operands, value.dtype(), value.shape());
  context.recorded_in = here;
  CustomRules::of_thread().add(made.node()->sequence, std::move(rule));
  return made;
}

}  // namespace rosin
