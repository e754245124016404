// The op suite, coverage: every registered op is reached by the cases, and the ops without gradient are those that
// have none. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <rosin/random.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

/// Notes the ops that these results need.
void note(const Arrays& results, std::set<std::string_view>& reached) {
  for (const Node* node : pending_of(results)) reached.insert(node->op->name);
}

/// First gradients of a case whose oracle has gradients, and the gradients of those by inputs and cotangents.
void note_gradients(const OpEntry& row, const OracleCase& entry, std::set<std::string_view>& reached) {
  const Function f = [&](const Arrays& x) { return row.call(entry, x); };
  const Arrays inputs = inputs_of(entry), cotangents = cotangents_of(entry);
  const auto count = static_cast<std::ptrdiff_t>(inputs.size());
  const Function slopes = [&](const Arrays& x) {
    Arrays present;
    for (const Array& g : gradients_of(f, {x.begin(), x.begin() + count}, {x.begin() + count, x.end()})) {
      if (!g.is_nothing()) present.push_back(g);
    }
    return present;
  };
  Arrays all = inputs;
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  const Arrays first = slopes(all);
  note(first, reached);
  Arrays ones;
  for (const Array& g : first) ones.push_back(evaluated(ones_like(g)));
  if (!first.empty()) note(gradients_of(slopes, all, ones), reached);
}

/// Ops that only draw numbers: no oracle, because their values follow from counters.
void note_draws(std::set<std::string_view>& reached) {
  Rng rng(1);
  note({uniform(rng, {3}, 0, 1), normal(rng, {3}, 0, 1), bernoulli(rng, 0.5, {3}), randint(rng, 0, 9, {3}),
        permutation(rng, 5)},
       reached);
}

/// Ops that no function of the table records: those of gradient calls (grad.hpp), of optimiser rules (moments.hpp), of
/// checks of steps (finding.hpp), of embeddings (lookup.hpp), attention (nn) and routines of the CPU (linalg.hpp,
/// fft.hpp), whose tests stand in src/grad, src/optim, src/nn and src/ops.
bool is_of_other_room(const Op& op) {
  const bool is_moment = op.name == "running_mean" || op.name == "running_square" || op.name == "scaled_by_root" ||
                         op.name == "moved_by_root";
  const bool is_lookup = op.name == "Embedding" || op.name == "EmbeddingBag";
  const bool is_check = op.name == "nothing_found";
  return op.kind == Kind::argument || op.kind == Kind::transfer || op.kind == Kind::attention ||
         op.kind == Kind::routine || op.name == "stop_gradient" || is_moment || is_lookup || is_check;
}

/// A registered op is a public function of the table, a part of one, or a step of their first or second gradients; an
/// op that none of these records is dead or lacks its row. Leaves and numbers are not recorded; other rooms than ops
/// (gradient calls, optimiser rules) test their own.
TEST(OpSuiteRegistry, EveryOpIsReachedByATableRowOrAGradient) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "some cases have Float64 alone, which the device lacks";
  std::set<std::string_view> reached;
  for_each_case(op_oracle_files(), [&](const OpEntry& row, const OracleCase& entry, const std::string&) {
    const Arrays outputs = row.call(entry, inputs_of(entry));
    note(outputs, reached);
    if (!outputs.empty() && !entry.cotangents.empty()) note_gradients(row, entry, reached);
  });
  note_draws(reached);
  for (const Op* op : registry()) {
    if (op->kind == Kind::leaf || op->kind == Kind::scalar || is_of_other_room(*op)) continue;
    EXPECT_TRUE(reached.count(op->name)) << op->name << " is recorded by no row of the table and by no gradient";
  }
}

/// Ops whose result varies with no operand, or in steps without slope (comparisons, logic, places), and constants on
/// purpose. Those with a slope of 0 (sign, floor, ...) state it instead.
const std::set<std::string_view> without_gradient = {
    "all",         "any",           "argmax",      "argmin",  "argsort",     "bitwise_and",
    "bitwise_not", "bitwise_or",    "bitwise_xor", "eq",      "is_finite",   "is_inf",
    "is_nan",      "labels",        "le",          "leaf",    "left_shift",  "logical_and",
    "logical_not", "logical_or",    "logical_xor", "lt",      "ne",          "nothing_found",
    "onehot",      "peak",          "permutation", "randint", "right_shift", "scalar",
    "signbit",     "stop_gradient", "uniform"};

TEST(OpSuiteRegistry, OpsWithoutGradientAreThoseThatHaveNone) {
  std::set<std::string_view> found;
  for (const Op* op : registry()) {
    if (op->gradient == nullptr) found.insert(op->name);
  }
  EXPECT_EQ(found, without_gradient);
}

/// What such an op gives is a constant: the gradient through it is nothing.
TEST(OpSuiteRegistry, NoGradientFlowsThroughOpsWithoutOne) {
  if (!has_type_there(Float64)) GTEST_SKIP() << "the cotangents are of Float64, which the device lacks";
  for_each_case(op_oracle_files(), [](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    const Op* op = find_op(row.oracle);
    if (op == nullptr || op->gradient != nullptr || entry.dtype.rfind("Float", 0) != 0) return;
    const Function f = [&](const Arrays& x) {
      Arrays outputs = row.call(entry, x);
      for (Array& y : outputs) y = cast(y, Float64);
      return outputs;
    };
    const Arrays inputs = inputs_of(entry);
    Arrays cotangents;
    for (const Array& y : f(inputs)) cotangents.push_back(evaluated(ones_like(y)));
    for (const Array& g : gradients_of(f, inputs, cotangents)) EXPECT_TRUE(g.is_nothing()) << where;
  });
}

}  // namespace
}  // namespace rosin::suite
