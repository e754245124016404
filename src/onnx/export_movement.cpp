// Ops that move elements in ops of the format, whose axes are the dims of arrays in reverse.
#include <algorithm>
#include <limits>

#include <rosin/complex.hpp>

#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

/// -1 for the only size that depends on the batch.
std::string target_sizes(NodeWriting& node) {
  std::vector<Size> sizes = node.file_sizes();
  const auto open = [](const Size& size) { return !size.is_fixed(); };
  const bool has_empty = std::find(sizes.begin(), sizes.end(), Size{}) != sizes.end();
  if (std::count_if(sizes.begin(), sizes.end(), open) == 1 && !has_empty) {
    *std::find_if(sizes.begin(), sizes.end(), open) = {0, -1};
  }
  return node.file.sizes(sizes);
}

constexpr int64_t last = std::numeric_limits<int64_t>::max(), before_first = std::numeric_limits<int64_t>::min();

/// An end of a slice: counted from the end of the dim where it depends on its size.
int64_t place(NodeWriting& node, const Size& at, const Size& size) {
  if (at.is_fixed()) return at.rest;
  if (at.factor != size.factor || at.rest >= size.rest) node.refuse("a place that follows from the batch size");
  return at.rest - size.rest;
}

int64_t end_of_slice(NodeWriting& node, const Size& end, int64_t step, const Size& size) {
  if (step < 0 && end.is_fixed() && end.rest < 0) return before_first;
  const bool to_the_end = end.factor == size.factor && end.rest >= size.rest;
  return step > 0 && to_the_end ? last : place(node, end, size);
}

}  // namespace

std::string same_out(NodeWriting& node) { return node.in(0); }

std::string reshaped(NodeWriting& node, const std::string& x) {
  const std::vector<Size>& sizes = node.sizes();
  std::vector<WireWriter> attributes;
  if (std::find(sizes.begin(), sizes.end(), Size{}) != sizes.end()) {
    attributes.push_back(integer_attribute("allowzero", 1));
  }
  return node.add("Reshape", {x, target_sizes(node)}, std::move(attributes));
}

std::string reshape_out(NodeWriting& node) { return reshaped(node, node.in(0)); }

std::string expand_out(NodeWriting& node) { return node.add("Expand", {node.in(0, node.value().type), node.shape()}); }

std::string permute_out(NodeWriting& node) {
  const auto from = node.attributes<PermuteAttributes>();
  std::vector<int64_t> order(node.sizes().size());
  for (int d = 0; d < node.rank(); ++d) {
    order[static_cast<size_t>(axis_of(d, node.rank()))] = axis_of(from.from[d], node.rank());
  }
  if (node.has_parts()) order.push_back(node.rank());
  return node.add("Transpose", {node.in(0)}, {integers_attribute("perm", order)});
}

std::string slice_out(NodeWriting& node) {
  const int64_t dim = node.value().words[0].rest, step = node.value().words[2].rest;
  const Size start = node.value().words[1], count = node.sizes()[static_cast<size_t>(dim)];
  const Size size = node.operand(0).sizes[static_cast<size_t>(dim)];
  const Size end{start.factor + step * count.factor, start.rest + step * count.rest};
  FileGraph& file = node.file;
  return node.add("Slice", {node.in(0), file.integers({place(node, start, size)}),
                            file.integers({end_of_slice(node, end, step, size)}),
                            file.integers({axis_of(dim, node.rank())}), file.integers({step})});
}

namespace {

/// Complex numbers get their borders beside them, each of the number's two parts.
std::string with_borders(NodeWriting& node, size_t axis, const Size& low, const Size& high) {
  const DType type = node.value().type == ComplexF64 ? Float64 : Float32;
  const std::string given = node.is_number(1) ? node.file.tensor(view_as_real(complex(node.number(1), 0))) : node.in(1);
  const std::string value = node.file.cast(given, type);
  const auto border = [&](const Size& size) {
    std::vector<Size> sizes = node.file_sizes();
    sizes[axis] = size;
    return node.add("Expand", {value, node.file.sizes(sizes)});
  };
  return node.add("Concat", {border(low), node.in(0), border(high)},
                  {integer_attribute("axis", static_cast<int64_t>(axis))});
}

}  // namespace

std::string pad_out(NodeWriting& node) {
  const int64_t dim = node.value().words[0].rest;
  const Size low = node.value().words[1], high = node.value().words[2];
  std::vector<Size> pads(2 * node.sizes().size());
  const auto axis = static_cast<size_t>(axis_of(dim, node.rank()));
  if (node.has_parts()) return with_borders(node, axis, low, high);
  pads[axis] = low;
  pads[axis + node.sizes().size()] = high;
  return node.add("Pad", {node.in(0), node.file.sizes(pads), node.in(1, node.value().type)});
}

std::string concat_out(NodeWriting& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.operands(); ++i) inputs.push_back(node.in(i, node.value().type));
  const int64_t axis = axis_of(node.attributes<DimAttributes>().dim, node.rank());
  return node.add("Concat", std::move(inputs), {integer_attribute("axis", axis)});
}

}  // namespace rosin::onnx
