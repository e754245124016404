// The op Scan of the format: its body makes a step along an axis. Read first: node_writing.hpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "onnx/node_writing.hpp"

namespace rosin::onnx {

/// `step` gives the next states from the values that the body takes: states, then what stands at the step's place of
/// each array of `along`. Results: the last states, then all states along the axis.
template <class Step>
std::vector<std::string> scanned(FileGraph& file, std::vector<std::string> states,
                                 const std::vector<std::string>& along, int64_t axis, bool reversed, Step step) {
  const size_t count = states.size();
  states.insert(states.end(), along.begin(), along.end());
  FileBody body = file.open_body(states.size());
  body.outputs = step(body.inputs);
  for (size_t i = 0; i < count; ++i) body.outputs.push_back(file.add("Identity", {body.outputs[i]}));
  const auto of_each = [&](std::string_view name, size_t each, int64_t value) {
    return integers_attribute(name, std::vector<int64_t>(each, value));
  };
  return file.close_body(
      "Scan", std::move(states), std::move(body),
      {integer_attribute("num_scan_inputs", static_cast<int64_t>(along.size())),
       of_each("scan_input_axes", along.size(), axis), of_each("scan_input_directions", along.size(), reversed),
       of_each("scan_output_axes", count, axis), of_each("scan_output_directions", count, reversed)});
}

}  // namespace rosin::onnx
