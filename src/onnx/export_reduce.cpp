// Reductions, places, running sums and sorting in ops of the format.
#include <rosin/error.hpp>

#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

std::vector<int64_t> reduced_axes(const NodeWriting& node) {
  const uint64_t dims = node.attributes<ReductionAttributes>().dims;
  const int rank = node.operand_rank(0);
  std::vector<int64_t> axes;
  for (int d = rank - 1; d >= 0; --d) {
    if (dims >> d & 1) axes.push_back(axis_of(d, rank));
  }
  return axes;
}

/// x reduced; last dims that the result does not have, of size 1, are left out. The axes of ReduceSum are an input in
/// all versions that are written, those of the others from version 18 on.
std::string reduced(NodeWriting& node, std::string_view op, const std::string& x) {
  const std::vector<int64_t> axes = reduced_axes(node);
  if (axes.empty()) return x;
  FileGraph& file = node.file;
  const bool as_input = op == "ReduceSum" || file.opset() >= 18;
  std::string y =
      as_input ? file.add(op, {x, file.integers(axes)}) : file.add(op, {x}, {integers_attribute("axes", axes)});
  const int left_out = node.operand_rank(0) - node.rank();
  if (left_out == 0) return y;
  std::vector<int64_t> first;
  for (int i = 0; i < left_out; ++i) first.push_back(i);
  return file.add("Squeeze", {y, file.integers(first)});
}

/// The first of a dim in order, as many as the node has, and their places.
std::vector<std::string> sorted(NodeWriting& node, const SortAttributes& by) {
  const std::string count = node.file.sizes({node.sizes()[static_cast<size_t>(by.dim)]});
  return node.file.add_several(
      "TopK", {node.in(0), count}, 2,
      {integer_attribute("axis", axis_of(by.dim, node.rank())), integer_attribute("largest", by.descending)});
}

}  // namespace

std::string sum_out(NodeWriting& node) { return reduced(node, node.row().file_op, node.in(0, node.value().type)); }

std::string extreme_out(NodeWriting& node) {
  if (node.value().type != Bool) return reduced(node, node.row().file_op, node.in(0));
  return node.file.cast(reduced(node, node.row().file_op, node.in(0, Int32)), Bool);
}

std::string any_out(NodeWriting& node) {
  return node.file.cast(reduced(node, node.row().file_op, node.file.cast(node.in(0, Bool), Int32)), Bool);
}

std::string place_out(NodeWriting& node) {
  const int64_t axis = axis_of(node.attributes<ScanAttributes>().dim, node.operand_rank(0));
  const std::string x = node.operand(0).type == Bool ? node.in(0, Int32) : node.in(0);
  return node.file.cast(node.add(node.row().file_op, {x}, {integer_attribute("axis", axis)}), node.value().type);
}

std::string along_axis(NodeWriting& node, std::string_view op) {
  const auto [dim, reversed] = node.attributes<ScanAttributes>();
  const std::string axis = node.file.number(Int64, static_cast<double>(axis_of(dim, node.rank())));
  return node.add(op, {node.in(0, node.value().type), axis}, {integer_attribute("reverse", reversed)});
}

std::string running_sum_out(NodeWriting& node) { return along_axis(node, "CumSum"); }

std::string sorted_places(NodeWriting& node) {
  return node.file.cast(sorted(node, node.attributes<SortAttributes>())[1], node.value().type);
}

/// The result of an op of several; of sorting, whose own row gives its operand on, or of a sequence.
std::string part_out(NodeWriting& node) {
  const RecordedValue& whole = node.operand(0);
  if (whole.op->routine == Routine::sequence) return sequence_part_out(node);
  if (whole.op->kind != Kind::sort) throw Error(ErrorKind::argument, std::string(whole.op->name));
  const auto which = static_cast<size_t>(node.attributes<PartAttributes>().number);
  const std::string result = sorted(node, whole.attributes.as<SortAttributes>())[which];
  return which == 0 ? result : node.file.cast(result, node.value().type);
}

}  // namespace rosin::onnx
