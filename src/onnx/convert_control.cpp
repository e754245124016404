// Conversions of control flow: bodies run node by node, as often as values say, which are read for it.
// Read first: convert.hpp.
#include <algorithm>

#include <rosin/create.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

constexpr int64_t most_rounds = 1 << 20;

/// The pieces side by side along a new axis 0 of the file.
Array stacked(const NodeCall& call, const Arrays& pieces) {
  if (pieces.empty()) call.refuse("a loop that collects values must run", "no round, so their sizes are not known");
  return stack(pieces, -1);
}

}  // namespace

Arrays if_value(const NodeCall& call) { return call.run(call.integer_in(0) != 0 ? "then_branch" : "else_branch", {}); }

/// Inputs: rounds, condition, carried values. Outputs: carried values, then what each round adds.
Arrays loop(const NodeCall& call) {
  const int64_t rounds = call.has(0) ? call.integer_in(0) : most_rounds;
  bool goes_on = !call.has(1) || call.integer_in(1) != 0;
  const size_t carried = call.input_count() - std::min<size_t>(call.input_count(), 2);
  Arrays values(call.inputs().begin() + static_cast<ptrdiff_t>(call.input_count() - carried), call.inputs().end());
  if (call.output_count() < carried) call.refuse("a loop gives what it carries", std::to_string(call.output_count()));
  std::vector<Arrays> collected(call.output_count() - carried);
  for (int64_t i = 0; i < rounds && goes_on; ++i) {
    if (i == most_rounds) call.refuse("a loop has at most 2^20 rounds", "more");
    Arrays inputs{worked_out(std::vector<int64_t>{i}, {}), full({}, true, Bool)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    const Arrays results = call.run("body", inputs);
    if (results.size() != 1 + call.output_count()) {
      call.refuse("the body gives a condition and what the loop gives", std::to_string(results.size()));
    }
    goes_on = results[0].item<bool>();
    for (size_t v = 0; v < carried; ++v) values[v] = results[1 + v];
    for (size_t c = 0; c < collected.size(); ++c) collected[c].push_back(results[1 + carried + c]);
  }
  for (const Arrays& pieces : collected) values.push_back(stacked(call, pieces));
  return values;
}

/// Inputs: states, then arrays that are taken apart along an axis. Outputs: states, then what rounds give, put
/// together.
Arrays scan(const NodeCall& call) {
  if (call.opset() < 9) call.refuse("Scan must be of version 9 or newer", std::to_string(call.opset()));
  const auto taken = static_cast<size_t>(call.integer("num_scan_inputs", 0));
  if (taken == 0 || taken > call.input_count()) call.refuse("Scan must take arrays apart", std::to_string(taken));
  const size_t states = call.input_count() - taken;
  const auto at = [](const std::vector<int64_t>& list, size_t i) { return i < list.size() ? list[i] : 0; };
  const std::vector<int64_t> axes = call.integers("scan_input_axes"), ways = call.integers("scan_input_directions"),
                             out_axes = call.integers("scan_output_axes"),
                             out_ways = call.integers("scan_output_directions");
  Arrays values(call.inputs().begin(), call.inputs().begin() + static_cast<ptrdiff_t>(states));
  std::vector<int> dims;
  for (size_t i = 0; i < taken; ++i) dims.push_back(call.dim(at(axes, i), call[states + i].rank()));
  const int64_t rounds = call[states].size(dims[0]);
  if (call.output_count() < states) call.refuse("Scan gives its states", std::to_string(call.output_count()));
  std::vector<Arrays> collected(call.output_count() - states);
  for (int64_t r = 0; r < rounds; ++r) {
    Arrays inputs = values;
    for (size_t i = 0; i < taken; ++i) {
      inputs.push_back(select(call[states + i], dims[i], at(ways, i) != 0 ? rounds - 1 - r : r));
    }
    const Arrays results = call.run("body", inputs);
    if (results.size() != call.output_count())
      call.refuse("the body gives what Scan gives", std::to_string(results.size()));
    for (size_t v = 0; v < states; ++v) values[v] = results[v];
    for (size_t c = 0; c < collected.size(); ++c) collected[c].push_back(results[states + c]);
  }
  for (size_t c = 0; c < collected.size(); ++c) {
    Arrays& pieces = collected[c];
    if (at(out_ways, c) != 0) std::reverse(pieces.begin(), pieces.end());
    if (pieces.empty()) stacked(call, pieces);
    values.push_back(stack(pieces, call.dim(at(out_axes, c), pieces[0].rank() + 1)));
  }
  return values;
}

}  // namespace rosin::onnx
