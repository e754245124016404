// AdamW without a schedule, and the averages of its parameters: see rosin/array_rules.hpp.
#include <rosin/array_rules.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "graph/context.hpp"
#include "optim/numbers.hpp"
#include "optim/shares.hpp"
#include "optim/tree.hpp"

namespace rosin {
namespace {

/// A 0-d zero beside x, in Float32 for halves.
Array wide_zero(const Array& x) {
  const DeviceScope scope(*x.node());
  return zeros(Shape{}, is_half(x) ? Float32 : x.dtype());
}

/// The z of a leaf, wherever the rule stands in others.
struct FastPart : ModelVisitor {
  Array z;
  void array(const Array& x, const ModelPath& path) override {
    if (path.name() == "z") z = x;
  }
};
/// The b1 of its rule; 0 where there is none.
struct FirstBeta : RuleVisitor {
  double value = 0;
  void enter(std::string_view rule) override { inside_ = rule == "ScheduleFreeAdamW"; }
  void option(const RuleOption& option) override {
    if (inside_ && option.name == "beta") value = option.numbers[0];
  }
  void leave() override {}

 private:
  bool inside_ = false;
};

}  // namespace

ScheduleFreeAdamW::State ScheduleFreeAdamW::init(const Array& x) const {
  return {x, zeros_like(x), wide_zero(x), wide_zero(x), counter(0)};
}

Array ScheduleFreeAdamW::replace(State& state, const Array& y, const Array& g) const {
  const int64_t t = counted(state.t);
  const double growth = t < warmup ? static_cast<double>(t) / static_cast<double>(warmup) : 1;
  const double s = eta * growth;
  state.v = number(beta[1]) * state.v + number(1 - beta[1]) * square(g);
  state.most = max(state.most, number(s));
  state.total = state.total + square(state.most);
  const Array c = cast(square(state.most) / max(state.total, 1e-38), y.dtype());
  const Array size = sqrt(state.v / number(1 - Step::of_thread().power(beta[1], t)));
  const Array r = g / (size + number(epsilon_of(g, epsilon))) + number(lambda) * y;
  const Array next = y + c * (state.z - y) + number(s) * (number(beta[0]) * (1 - c) - 1) * r;
  state.z = state.z - number(s) * r;
  return next;
}

void detail::average_schedule_free(const State& state, ModelEdit model) {
  std::vector<ArrayPlace<Array*>> places;
  list_arrays(model, places);
  const StateTree* tree = state.tree();
  if (!tree || tree->paths.size() != places.size()) {
    throw Error(ErrorKind::argument,
                "schedule_free_average: the state must be of this model; it has other arrays; give it the model that "
                "setup was given");
  }
  if (sharing_of(*tree)) {
    throw Error(ErrorKind::argument,
                "schedule_free_average: the state must be that of all parameters; this one has a rank's part; give it "
                "distributed::gathered(state), which every rank calls");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (tree->leaf_of[i] < 0) continue;
    const std::unique_ptr<ErasedRule> rule(tree->leaves[static_cast<size_t>(tree->leaf_of[i])].rule->copy());
    FirstBeta beta;
    rule->describe(beta);
    if (beta.value == 0) continue;
    FastPart fast;
    std::as_const(*rule).visit_state(fast, {});
    Array& y = *places[i].array;
    y = y + (1 - 1 / beta.value) * (fast.z - y);
  }
  eval();
}

}  // namespace rosin
