// Running products and extremes and recurrences in ops of the format: the op Scan, whose body makes a step.
#include "onnx/exports.hpp"
#include "ops/reducers.hpp"

#include "graph/leaf.hpp"

namespace rosin::onnx {
namespace {

/// What halves are computed in too.
DType computed_type(DType type) { return type == Float16 || type == BFloat16 ? Float32 : type; }

/// The state after each step along the node's dim; `step` gives it from the one before and from what stands there.
template <class Step> std::string states(NodeWriting& node, const ScalarValue& start, int inputs, Step step) {
  const DType type = computed_type(node.value().type);
  const auto [dim, reversed] = node.attributes<ScanAttributes>();
  std::vector<Size> sizes(node.sizes().rbegin(), node.sizes().rend());
  const int64_t axis = axis_of(dim, node.rank());
  sizes.erase(sizes.begin() + axis);
  FileGraph& file = node.file;
  std::vector<std::string> given{file.add("Expand", {file.number(type, start), file.sizes(sizes)})};
  for (int i = 0; i < inputs; ++i) given.push_back(node.in(i, type));
  FileBody body = file.open_body(given.size());
  const std::string state = step(body.inputs);
  body.outputs = {state, file.add("Identity", {state})};
  const std::vector<int64_t> axes(static_cast<size_t>(inputs), axis), ways(static_cast<size_t>(inputs), reversed);
  const std::string result = file.close_body(
      "Scan", std::move(given), std::move(body),
      {integer_attribute("num_scan_inputs", inputs), integers_attribute("scan_input_axes", axes),
       integers_attribute("scan_input_directions", ways), integers_attribute("scan_output_axes", {axis}),
       integers_attribute("scan_output_directions", {reversed})})[1];
  return type == node.value().type ? result : file.cast(result, node.value().type);
}

ScalarValue neutral(const NodeWriting& node) {
  return scalar_value(*neutral_of(*node.value().op->reducer, computed_type(node.value().type)).node());
}

}  // namespace

std::string running_out(NodeWriting& node) {
  return states(node, neutral(node), 1, [&](const std::vector<std::string>& in) {
    return node.add(node.row().file_op, {in[0], in[1]});
  });
}

std::string running_product_out(NodeWriting& node) {
  return node.file.opset() < 26 ? running_out(node) : along_axis(node, "CumProd");
}

std::string running_log_sum_out(NodeWriting& node) {
  return states(node, neutral(node), 1, [&](const std::vector<std::string>& in) {
    return log_sum(node, computed_type(node.value().type), in[0], in[1]);
  });
}

std::string recurrence_out(NodeWriting& node) {
  return states(node, {}, 2, [&](const std::vector<std::string>& in) {
    return node.add("Add", {node.add("Mul", {in[1], in[0]}), in[2]});
  });
}

}  // namespace rosin::onnx
