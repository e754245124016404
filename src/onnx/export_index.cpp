// Gathering in ops of the format.
#include <numeric>

#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

/// Indices in a type that the format takes.
std::string places(NodeWriting& node, int i) {
  const DType type = node.operand(i).type;
  return type == Int32 || type == Int64 ? node.in(i) : node.in(i, Int64);
}

std::vector<WireWriter> along(const NodeWriting& node) {
  return {integer_attribute("axis", axis_of(node.attributes<GatherAttributes>().dim, node.operand_rank(0)))};
}

}  // namespace

std::string gather_out(NodeWriting& node) {
  if (node.attributes<GatherAttributes>().along != 0) return take_along_out(node);
  return node.add("Gather", {node.in(0), places(node, 1)}, along(node));
}

std::string take_along_out(NodeWriting& node) {
  return node.add("GatherElements", {node.in(0), places(node, 1)}, along(node));
}

/// Each label beside all classes, along a new last axis.
std::string onehot_out(NodeWriting& node) {
  std::vector<int64_t> classes(static_cast<size_t>(node.sizes()[0].rest));
  std::iota(classes.begin(), classes.end(), 0);
  const std::string labels = node.add("Unsqueeze", {node.in(0, Int64), node.file.integers({-1})});
  return node.add("Equal", {labels, node.file.integers(classes)});
}

}  // namespace rosin::onnx
