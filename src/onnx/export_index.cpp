// Gathering and scattering in ops of the format.
#include <algorithm>
#include <numeric>

#include <rosin/elementwise.hpp>

#include "graph/gather_form.hpp"
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

/// An order of axes in which some come first and the others follow as they stand.
std::vector<int64_t> axes_first(int64_t begin, int64_t count, int rank) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back(begin + i);
  for (int64_t i = 0; i < rank; ++i) {
    if (i < begin || i >= begin + count) order.push_back(i);
  }
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return back;
}

std::string transposed(NodeWriting& node, const std::string& x, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return node.add("Transpose", {x}, {integers_attribute("perm", order)});
}

}  // namespace

std::string gather_out(NodeWriting& node) {
  if (node.attributes<GatherAttributes>().along != 0) return take_along_out(node);
  return node.add("Gather", {node.in(0), places(node, 1)}, along(node));
}

/// Along each dim the sum of its taps: elements at the places of each, times their weights.
std::string weighed_out(NodeWriting& node) {
  const auto how = node.attributes<WeighedAttributes>();
  const auto sizes_of = [](const std::vector<Size>& sizes) {
    std::vector<int64_t> all;
    for (const Size& size : sizes) all.push_back(size.rest);
    return Shape(all);
  };
  const Shape result = sizes_of(node.sizes()), x = sizes_of(node.operand(0).sizes);
  const std::vector<int64_t> places = cast(node.operand(1).value, Int64).to_vector<int64_t>();
  const std::vector<double> weights = cast(node.operand(2).value, Float64).to_vector<double>();
  const auto begins = table_begins(how, result, x);
  std::string y = node.in(0);
  for (int d = 0; d < how.dims; ++d) {
    const int64_t dim = how.dim + d, taps = how.taps_of(d), count = result[static_cast<int>(dim)];
    std::vector<std::string> parts;
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::vector<int64_t> at;
      std::vector<double> of;
      for (int64_t i = 0; i < count; ++i) {
        const auto entry = static_cast<size_t>(begins[static_cast<size_t>(d)] + i * taps + tap);
        at.push_back(places[entry]);
        of.push_back(weights[entry]);
      }
      const auto axis = integer_attribute("axis", axis_of(dim, node.rank()));
      const std::string part = node.add("Gather", {y, node.file.integers(at)}, {axis});
      if (std::all_of(of.begin(), of.end(), [](double weight) { return weight == 1; })) {
        parts.push_back(part);
        continue;
      }
      std::vector<int64_t> along(static_cast<size_t>(dim), 1);
      along.push_back(count);
      parts.push_back(node.add("Mul", {part, node.file.tensor(cast(Array(of, Shape(along)), node.value().type))}));
    }
    y = parts.size() == 1 ? parts[0] : node.add("Sum", parts);
  }
  return y;
}

std::string take_along_out(NodeWriting& node) {
  return node.add("GatherElements", {node.in(0), places(node, 1)}, along(node));
}

/// Whole slices at indices of the first axis, to which that of the scattering is brought. The format does not say which
/// of repeated indices stays; runtimes go through them in order, so that it is the last one.
std::string scatter_out(NodeWriting& node) {
  const int rank = node.rank(), places_rank = node.operand_rank(1);
  const int64_t axis = axis_of(node.attributes<DimAttributes>().dim, rank);
  const DType type = node.value().type;
  const std::vector<int64_t> order = axes_first(axis, 1, rank);
  const std::string target = transposed(node, node.in(0, type), order);
  const std::string updates = transposed(node, node.in(2, type), axes_first(axis, places_rank, node.operand_rank(2)));
  const std::string at = node.add("Unsqueeze", {node.in(1, Int64), node.file.integers({-1})});
  const std::string_view reduction = node.row().file_op;
  if (node.file.opset() < 18 && (reduction == "max" || reduction == "min")) {
    node.refuse("the format has it from opset 18 on");
  }
  std::vector<WireWriter> attributes;
  if (!reduction.empty()) attributes.push_back(text_attribute("reduction", reduction));
  return transposed(node, node.add("ScatterND", {target, at, updates}, std::move(attributes)), inverse(order));
}

/// Zeros to which each element is added at an index of its own.
std::string add_along_out(NodeWriting& node) {
  const DType type = node.value().type;
  const std::string zeros = node.add("Expand", {node.file.number(type, 0.0), node.shape()});
  const int64_t axis = axis_of(node.attributes<DimAttributes>().dim, node.rank());
  return node.add("ScatterElements", {zeros, places(node, 0), node.in(1, type)},
                  {integer_attribute("axis", axis), text_attribute("reduction", "add")});
}

/// What a file has of an op that only looks whether its operand is as it must be.
std::string always_true(NodeWriting& node) {
  return node.add("Expand", {node.file.number(Bool, {1, 1}), node.shape()});
}

/// Each label beside all classes, along a new last axis.
std::string onehot_out(NodeWriting& node) {
  std::vector<int64_t> classes(static_cast<size_t>(node.sizes()[0].rest));
  std::iota(classes.begin(), classes.end(), 0);
  const std::string labels = node.add("Unsqueeze", {node.in(0, Int64), node.file.integers({-1})});
  return node.add("Equal", {labels, node.file.integers(classes)});
}

}  // namespace rosin::onnx
