// What the op suite does with an oracle case: lays its inputs out in several ways, computes it fused or one node at a
// time, and compares. Read first: op_table.hpp. Read next: op_suite_test.cpp (values), op_suite_gradient_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/op.hpp"
#include "op_table.hpp"

namespace rosin::suite {

/// How an input lies in memory, or what made it.
enum class Layout {
  contiguous,
  transposed,  // a permuted view of an array with reversed dims
  sliced,      // out of a larger array
  strided,     // every second element, backwards
  repeated,    // one place of an expanded array
  pending,     // the result of an elementwise op that has not run
  tangled      // pending, then transposed: a movement between two ops
};
inline constexpr std::array<Layout, 7> all_layouts = {Layout::contiguous, Layout::transposed, Layout::sliced,
                                                      Layout::strided,    Layout::repeated,   Layout::pending,
                                                      Layout::tangled};
/// All of them; where kernels are compiled, those that differ most.
inline std::vector<Layout> tested_layouts() {
  if (compiles_there()) return {Layout::contiguous, Layout::tangled};
  return {all_layouts.begin(), all_layouts.end()};
}
inline const char* name_of(Layout layout) {
  constexpr const char* names[] = {"contiguous", "transposed", "sliced", "strided", "repeated", "pending", "tangled"};
  return names[static_cast<int>(layout)];
}

inline Array evaluated(const Array& x) {
  eval(x);
  return x;
}

inline std::vector<int64_t> sizes_of(const Array& x) {
  const Shape shape = x.shape();
  return {shape.begin(), shape.end()};
}

inline Array reversed_dims(const Array& x) {
  std::vector<int> order;
  for (int d = x.rank(); d-- > 0;) order.push_back(d);
  return permute(x, order);
}

/// x again, as the value of a recorded op: every bit kept.
inline Array passed_on(const Array& x) { return where(there(full(Shape{}, true)), x, x); }

/// Junk that must not be seen.
inline Array junk(DType type) {
  return there(evaluated(cast(is_float(type) ? Array(std::numeric_limits<double>::quiet_NaN()) : Array(77), type)));
}

inline Array cut_out(const Array& x) {
  Array larger = x.rank() == 0 ? reshape(x, {1}) : x;
  const Shape shape = larger.shape();
  for (int d = 0; d < shape.rank(); ++d) larger = pad(larger, d, 1 + d, 2, junk(x.dtype()));
  eval(larger);
  for (int d = 0; d < shape.rank(); ++d) larger = slice(larger, d, 1 + d, 1 + d + shape[d]);
  return x.rank() == 0 ? reshape(larger, Shape{}) : larger;
}

inline Array every_second_backwards(const Array& x) {
  Array larger = x;
  for (int d = 0; d < x.rank(); ++d) larger = flip(repeat(larger, 2, d), d);
  eval(larger);
  for (int d = 0; d < x.rank(); ++d) {
    larger = x.size(d) == 0 ? larger : flip(slice(larger, d, 0, 2 * x.size(d), 2), d);
  }
  return larger;
}

/// x (a leaf) with the same values in that layout.
inline Array laid_out(const Array& x, Layout layout) {
  switch (layout) {
    case Layout::contiguous: return x;
    case Layout::transposed: return reversed_dims(evaluated(reversed_dims(x)));
    case Layout::sliced: return cut_out(x);
    case Layout::strided: return every_second_backwards(x);
    case Layout::repeated: {
      if (x.rank() == Shape::max_rank) return x;
      std::vector<int64_t> sizes = sizes_of(x);
      sizes.push_back(3);
      return select(expand(unsqueeze(x, -1), Shape(std::span<const int64_t>(sizes))), -1, 1);
    }
    case Layout::pending: return passed_on(x);
    case Layout::tangled: return reversed_dims(passed_on(reversed_dims(x)));
  }
  return x;
}

inline Arrays inputs_of(const OracleCase& entry, Layout layout = Layout::contiguous) {
  Arrays inputs;
  for (const OracleArray& input : entry.inputs) inputs.push_back(laid_out(oracles::to_array(input), layout));
  return inputs;
}

/// Whether the test device has the types of a case.
inline bool has_types_there(const OracleCase& entry) {
  const auto has = [](const OracleArray& array) { return has_type_there(oracles::dtype_named(array.dtype)); };
  return std::all_of(entry.inputs.begin(), entry.inputs.end(), has) &&
         std::all_of(entry.outputs.begin(), entry.outputs.end(), has) &&
         std::all_of(entry.cotangents.begin(), entry.cotangents.end(), has) &&
         (!entry.has("exponents") || has_type_there(Float64));
}

/// Circular functions of huge Float64 numbers are those of a number an ulp away (elementwise.hpp says so).
inline oracles::OracleTolerance tolerance_of(const OracleCase& entry) {
  oracles::OracleTolerance tolerance = entry.tolerance;
  if (!entry.has("samples") || entry.attributes.at("samples") != "huge" || entry.dtype != "Float64") return tolerance;
  double largest = 0, steepest = 1;
  for (const double x : entry.inputs[0].values) largest = std::max(largest, std::abs(x));
  for (const double y : entry.outputs[0].values) steepest = std::max(steepest, 1 + y * y);
  tolerance.atol += oracles::spacing("Float64", largest) * steepest;
  return tolerance;
}

using Function = std::function<Arrays(const Arrays&)>;

/// sum(cotangent * output), of both parts where they are complex.
inline Array weighted_sum(const Array& output, const Array& cotangent) {
  const bool parts = is_complex(output.dtype());
  return parts ? sum(view_as_real(output) * view_as_real(cotangent)) : sum(output * cotangent);
}

/// The sum of that over all outputs that have a cotangent.
inline Array weighted(const Arrays& outputs, const Arrays& cotangents) {
  Array total;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (cotangents[i].is_nothing()) continue;
    const Array part = weighted_sum(outputs[i], cotangents[i]);
    total = total.is_nothing() ? part : total + part;
  }
  return total;
}

inline Arrays gradients_of(const Function& f, const Arrays& inputs, const Arrays& cotangents) {
  return gradient([&](const Arrays& x) { return weighted(f(x), cotangents); }, inputs);
}

inline Arrays cotangents_of(const OracleCase& entry) {
  Arrays cotangents;
  for (const OracleArray& cotangent : entry.cotangents) cotangents.push_back(oracles::to_array(cotangent));
  return cotangents;
}

/// All recorded nodes that are not computed yet and that these arrays need, oldest first.
inline std::vector<Node*> pending_of(const Arrays& arrays) {
  std::set<Node*> seen;
  std::vector<Node*> found;
  const auto visit = [&](Node* node) {
    if (node && !node->ready() && seen.insert(node).second) found.push_back(node);
  };
  for (const Array& array : arrays) visit(array.node());
  for (size_t i = 0; i < found.size(); ++i) {
    for (Node* operand : found[i]->arrays()) visit(operand);
  }
  std::sort(found.begin(), found.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  return found;
}

/// Computes what `make` records with one evaluation for every node, so that nothing is fused.
inline Arrays one_by_one(const std::function<Arrays()>& make) {
  Arrays results = make();
  const std::vector<Node*> nodes = pending_of(results);
  std::vector<Node*> places;
  for (const Array& result : results) places.push_back(result.node());
  for (Node* node : nodes) add_count(node, one_reference);
  for (Node* node : places) {
    if (node) add_count(node, one_reference);
  }
  results.clear();
  Arrays handles;
  for (Node* node : nodes) {
    add_count(node, one_user);
    handles.push_back(Array::adopt(node));
    eval(handles.back());
  }
  for (Node* node : places) {
    if (node) add_count(node, one_user);
    results.push_back(node ? Array::adopt(node) : Array());
    if (node) drop_count(node, one_reference);
  }
  for (Node* node : nodes) drop_count(node, one_reference);
  return results;
}

/// The first difference between an array and what was expected, as text; empty where there is none.
inline std::string difference(const Array& got, const OracleArray& want, const oracles::OracleTolerance& tolerance) {
  std::ostringstream text;
  if (got.is_nothing()) return want.role + ": nothing";
  if (!(got.shape() == oracles::shape_of(want)) || to_string(got.dtype()) != want.dtype) {
    return want.role + ": got " + to_string(got.shape()) + " of " + to_string(got.dtype()) + ", want " +
           to_string(oracles::shape_of(want)) + " of " + want.dtype;
  }
  if (tolerance.exact && is_integer(got.dtype()) && cast(got, Int64).to_vector<int64_t>() != want.integers) {
    text << want.role << ": other integers; ";
  }
  const std::vector<double> values = oracles::values_of(got);
  for (size_t i = 0; i < values.size(); ++i) {
    if (oracles::matches(tolerance, want.dtype, want.values[i], values[i])) continue;
    text.precision(17);
    text << want.role << " element " << i << " of " << values.size() << ": want " << want.values[i] << ", got "
         << values[i];
    break;
  }
  return text.str();
}

/// Whether two arrays have the same shape, type and bits (every NaN equals every NaN); text of the first difference.
inline std::string bit_difference(const Array& a, const Array& b) {
  if (a.is_nothing() || b.is_nothing()) return a.is_nothing() == b.is_nothing() ? "" : "one of them is nothing";
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
    return to_string(a.shape()) + " of " + to_string(a.dtype()) + " and " + to_string(b.shape()) + " of " +
           to_string(b.dtype());
  }
  const Array one = on_cpu(a), other = on_cpu(b);
  const size_t count = static_cast<size_t>(a.count());
  if (count == 0 || std::memcmp(one.node()->data(), other.node()->data(), count * size_of(a.dtype())) == 0) return {};
  const std::vector<double> x = oracles::values_of(one), y = oracles::values_of(other);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) continue;
    std::ostringstream text;
    text.precision(17);
    text << "element " << i << " of " << count << ": " << x[i] << " and " << y[i];
    return text.str();
  }
  if (is_integer(a.dtype())) return "integers that differ beyond 53 bits";
  return {};
}

/// The same; where the device's library has computed something since it had this many calls, which adds in another
/// order than kernels do, the values need only be close.
inline std::string library_difference(const Array& a, const Array& b, int64_t calls_before) {
  const std::string bits = bit_difference(a, b);
  if (bits.empty() || stats().library_calls == calls_before) return bits;
  const double close = a.dtype() == Float64 ? 1e-12 : a.dtype() == Float32 ? 1e-5 : 2e-2;
  return allclose(on_cpu(a), on_cpu(b), {.rtol = close, .atol = close}) ? "" : bits;
}

/// A case in Float64 without attributes of its own (else in any type), for shapes and types of the operands.
inline const OracleCase* example_of(const OpEntry& row) {
  const OracleCase* example = nullptr;
  for (const std::string& file : op_oracle_files()) {
    for (const OracleCase& entry : cases_of(file)) {
      if (entry.op != row.oracle || entry.has("n") || entry.has("exponents")) continue;
      if (example == nullptr || (entry.dtype == "Float64" && example->dtype != "Float64")) example = &entry;
    }
  }
  return example;
}

/// A case of an oracle op, and a row of the table that computes it.
struct CaseOfOp {
  const OpEntry* row;
  const OracleCase* entry;
  std::string where;
};
using Check = std::function<void(const OpEntry&, const OracleCase&, const std::string&)>;
using Choose = std::function<bool(const OpEntry&, const OracleCase&, const std::string&)>;

/// Calls `check(row, case, where)` for every table row and every case of its oracle op in these files that is chosen;
/// of cases that are alike (checks_alike), one.
inline void for_each_case(const std::vector<std::string>& files, const Check& check, const Choose& choose = {}) {
  std::vector<CaseOfOp> cases;
  std::map<std::string_view, size_t> seen;  // cases of an op
  for (const std::string& file : files) {
    for (const OracleCase& entry : cases_of(file)) {
      if (!has_types_there(entry)) continue;
      for (const OpEntry& row : op_table()) {
        if (row.oracle != entry.op) continue;
        const std::string where =
            std::string(row.name) + " " + entry.dtype + " (" + file + ":" + std::to_string(entry.line) + ")";
        if (choose && !choose(row, entry, where)) continue;
        if (seen[row.name]++ % checks_alike() == 0) cases.push_back({&row, &entry, where});
      }
    }
  }
  run_checks(cases.size(), [&](size_t i) {
    try {
      check(*cases[i].row, *cases[i].entry, cases[i].where);
    } catch (const std::exception& error) {
      ADD_FAILURE() << cases[i].where << ": " << error.what();
    }
  });
}

}  // namespace rosin::suite
