// Checkpoint regions are a mark on nodes; rules of users are kept by the context until the outermost gradient call
// ends.
#include <rosin/gradient_rules.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/free_list.hpp>
#include <rosin/grad.hpp>

#include "base/of_thread.hpp"
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

/// Has the rule say the gradients by the inputs, which are the operands from 1 on.
void give_by_rule(Backward& b, const detail::CustomRule& rule, const std::vector<Array>& slopes) {
  const std::vector<Array> gradients = rule(slopes);
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
}

Op& identity_op(std::string_view name, int operands, std::string_view doc) {
  return *register_op({.name = name, .kind = Kind::argument, .operands = operands, .doc = doc});
}

/// The gradient of the operands behind the first is the user's rule.
const Op& custom_op = identity_op("custom_gradient", Op::any, "the identity, with a gradient that the user states")
                          .with_gradient([](Backward& b) {
                            CustomRules::Rule* rule = CustomRules::of_thread().find(b.node().sequence);
                            if (rule) give_by_rule(b, rule->gives, {b.gradient});
                          });

/// Stands before several values: all inputs, and a number that each value depends on. Its rule is asked when the walk
/// has met all values.
const Op& inputs_op =
    identity_op("custom_gradients", Op::any, "a number, with a gradient by what several values are of")
        .with_gradient([](Backward& b) {
          CustomRules::Rule* rule = CustomRules::of_thread().find(b.node().sequence);
          if (!rule) return;
          std::vector<Array> slopes(rule->slopes.size());
          slopes.swap(rule->slopes);
          give_by_rule(b, rule->gives, slopes);
        });

/// One of the values: leaves the gradient by it with the rule, which finds it by operand 1.
const Op& value_op = []() -> const Op& {
  Op& op = identity_op("custom_value", 2, "the identity, one of several with a gradient that the user states");
  op.attribute_words = 1;
  return op.with_gradient([](Backward& b) {
    CustomRules::Rule* rule = CustomRules::of_thread().find(b.node().arrays()[1]->sequence);
    if (!rule) return;
    rule->slopes[static_cast<size_t>(b.attributes<PartAttributes>().number)] = b.gradient;
    b.give(1, 0.0);
  });
}();

/// While it lives, what is recorded belongs to no region: a rule belongs to the node recorded now.
class OutsideRegions {
 public:
  OutsideRegions() : here_(Context::current().recorded_in) { Context::current().recorded_in = here_.with(0u); }
  ~OutsideRegions() { Context::current().recorded_in = here_; }
  OutsideRegions(const OutsideRegions&) = delete;
  OutsideRegions& operator=(const OutsideRegions&) = delete;

 private:
  RecordedIn here_;
};

void require_some(std::span<const Array> inputs) {
  if (!inputs.empty()) return;
  throw Error(ErrorKind::argument,
              "custom_gradient: there must be an input; got none; name the arrays of which the value was computed, "
              "or write stop_gradient(value)");
}

/// Records the identity of `first`, with the inputs behind it.
Array record_before(const Op& op, const Array& first, std::span<const Array> inputs) {
  std::vector<const Array*, detail::FreeListAllocator<const Array*>> operands{&first};
  for (const Array& input : inputs) operands.push_back(&input);
  return record(op, operands, first.dtype(), first.shape());
}

}  // namespace

CustomRules& CustomRules::of_thread() { return rosin::of_thread<CustomRules>(); }

CustomRules::Rule* CustomRules::find(uint64_t sequence) {
  for (Rule& rule : rules_) {
    if (rule.sequence == sequence) return &rule;
  }
  return nullptr;
}

void CustomRules::forget_slopes(uint64_t first) {
  for (Rule& rule : rules_) {
    if (rule.sequence >= first) std::ranges::fill(rule.slopes, Array());
  }
}

Array detail::with_rule(const Array& value, std::span<const Array> inputs, detail::CustomRule rule) {
  require_some(inputs);
  require(custom_op, value);
  if (!in_gradient()) return value;
  const Array constant = stop_gradient(value);
  const OutsideRegions now;
  Array made = record_before(custom_op, constant, inputs);
  CustomRules::of_thread().add(made.node()->sequence, std::move(rule));
  return made;
}

std::vector<Array> detail::with_rule(std::span<const Array> values, std::span<const Array> inputs,
                                     detail::CustomRule rule) {
  require_some(inputs);
  if (values.empty()) {
    throw Error(ErrorKind::argument, "custom_gradients: there must be a value; got none; name what was computed");
  }
  for (const Array& value : values) require(value_op, value);
  std::vector<Array> made(values.begin(), values.end());
  if (!in_gradient()) return made;
  for (Array& value : made) value = stop_gradient(value);
  const DeviceScope scope(*values[0].node());
  const Array number = zeros({});
  const OutsideRegions now;
  const Array before = record_before(inputs_op, number, inputs);
  for (size_t k = 0; k < made.size(); ++k) {
    const Array* operands[] = {&made[k], &before};
    made[k] = record(value_op, operands, made[k].dtype(), made[k].shape(),
                     Attributes::of(PartAttributes{static_cast<int64_t>(k)}));
  }
  CustomRules::of_thread().add(before.node()->sequence, std::move(rule), made.size());
  return made;
}

}  // namespace rosin
