// Running products and extremes and recurrences in ops of the format: the op Scan, whose body makes a step.
#include "onnx/export_scan.hpp"
#include "graph/leaf.hpp"
#include "onnx/exports.hpp"
#include "ops/reducers.hpp"

namespace rosin::onnx {
namespace {

/// What halves are computed in too.
DType computed_type(DType type) { return type == Float16 || type == BFloat16 ? Float32 : type; }

/// The state after each step along the node's dim; `step` gives it from the one before and from what stands there.
template <class Step> std::string states(NodeWriting& node, const ScalarValue& start, int inputs, Step step) {
  const DType type = computed_type(node.value().type);
  const auto [dim, reversed] = node.attributes<ScanAttributes>();
  std::vector<Size> sizes = node.file_sizes();
  const int64_t axis = axis_of(dim, node.rank());
  sizes.erase(sizes.begin() + axis);
  FileGraph& file = node.file;
  std::vector<std::string> along;
  for (int i = 0; i < inputs; ++i) along.push_back(node.in(i, type));
  const std::string first = file.add("Expand", {file.number(type, start), file.sizes(sizes)});
  const auto made = [&](const std::vector<std::string>& in) { return std::vector<std::string>{step(in)}; };
  const std::string result = scanned(file, {first}, along, axis, reversed != 0, made)[1];
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
