// Products, convolutions and pooling in ops of the format.
#include <algorithm>

#include <rosin/movement.hpp>

#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

/// The operand in the file, with its last two axes exchanged.
std::string exchanged(NodeWriting& node, const std::string& x, int rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return node.add("Transpose", {x}, {integers_attribute("perm", order)});
}

std::string factor(NodeWriting& node, int i) {
  const std::string x = node.in(i, node.value().type);
  const bool transposed = node.attributes<MatmulAttributes>().transposed[i] != 0;
  return transposed ? exchanged(node, x, node.operand_rank(i)) : x;
}

int spatial_dims(const NodeWriting& node) { return node.rank() - 2; }

/// Of the spatial dims, in the order of the file.
template <class Number> std::vector<int64_t> per_axis(const NodeWriting& node, const Number (&list)[3]) {
  std::vector<int64_t> values;
  for (int d = spatial_dims(node) - 1; d >= 0; --d) values.push_back(list[d]);
  return values;
}

std::vector<WireWriter> window_settings(const NodeWriting& node, const WindowAttributes& window) {
  std::vector<int64_t> pads = per_axis(node, window.pad_low), high = per_axis(node, window.pad_high);
  pads.insert(pads.end(), high.begin(), high.end());
  return {integers_attribute("strides", per_axis(node, window.stride)), integers_attribute("pads", pads)};
}

std::vector<int64_t> fixed_sizes(const NodeWriting& node, const RecordedValue& x) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < spatial_dims(node); ++d) {
    if (!x.sizes[static_cast<size_t>(d)].is_fixed()) node.refuse("a spatial dim that follows from the batch size");
    sizes.push_back(x.sizes[static_cast<size_t>(d)].rest);
  }
  return sizes;
}

Array flipped(const Array& w) {
  std::vector<int> dims;
  for (int d = 0; d < w.rank() - 2; ++d) dims.push_back(d);
  return flip(w, std::span<const int>(dims));
}

/// The format knows cross-correlation alone: kernels of true convolutions are turned around, at once where they are
/// an array.
std::string kernels(NodeWriting& node, const WindowAttributes& window) {
  if (!window.flipped) return node.in(1);
  const RecordedValue& w = node.operand(1);
  if (!w.op && w.input < 0) return node.file.tensor_made_from(w.value, "flipped", flipped);
  const auto spatial = static_cast<size_t>(spatial_dims(node));
  const std::vector<int64_t> minus_one(spatial, -1), beyond(spatial, INT64_MIN);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  FileGraph& file = node.file;
  const std::string back = file.integers(minus_one);
  return node.add("Slice", {node.in(1), back, file.integers(beyond), file.integers(axes), back});
}

}  // namespace

std::vector<WireWriter> convolution_settings(const NodeWriting& node, const WindowAttributes& window) {
  std::vector<WireWriter> settings = window_settings(node, window);
  settings.push_back(integers_attribute("dilations", per_axis(node, window.dilation)));
  settings.push_back(integer_attribute("group", window.groups));
  return settings;
}

std::vector<WireWriter> pool_settings(const NodeWriting& node, int64_t dilated_since) {
  const auto window = node.attributes<WindowAttributes>();
  std::vector<WireWriter> settings = window_settings(node, window);
  settings.push_back(integers_attribute("kernel_shape", per_axis(node, window.window)));
  const bool dilated = std::any_of(window.dilation, window.dilation + 3, [](int32_t step) { return step != 1; });
  if (!dilated) return settings;
  if (node.file.opset() < dilated_since) node.refuse("windows with steps, which opset 19 has");
  settings.push_back(integers_attribute("dilations", per_axis(node, window.dilation)));
  return settings;
}

/// c' = b' a', as dims are reversed.
std::string matmul_out(NodeWriting& node) { return node.add("MatMul", {factor(node, 1), factor(node, 0)}); }

std::string conv_out(NodeWriting& node) {
  const auto window = node.attributes<WindowAttributes>();
  return node.add("Conv", {node.in(0), kernels(node, window)}, convolution_settings(node, window));
}

std::string spread_out(NodeWriting& node, const std::string& x, const std::string& kernels,
                       const std::vector<int64_t>& size) {
  const auto window = node.attributes<WindowAttributes>();
  const std::vector<int64_t> from = fixed_sizes(node, node.operand(0)), to = fixed_sizes(node, node.value());
  int64_t more[3] = {};
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t reach = (size[d] - 1) * window.dilation[d] + 1 - window.pad_low[d] - window.pad_high[d];
    more[d] = to[d] - ((from[d] - 1) * window.stride[d] + reach);
  }
  std::vector<WireWriter> settings = convolution_settings(node, window);
  settings.push_back(integers_attribute("output_padding", per_axis(node, more)));
  return node.add("ConvTranspose", {x, kernels}, std::move(settings));
}

std::string conv_transpose_out(NodeWriting& node) {
  const std::string w = kernels(node, node.attributes<WindowAttributes>());
  return spread_out(node, node.in(0), w, fixed_sizes(node, node.operand(1)));
}

std::string max_pool_out(NodeWriting& node) { return node.add("MaxPool", {node.in(0)}, pool_settings(node, 10)); }

/// Padding counts, and windows end in the padded image.
std::string mean_pool_out(NodeWriting& node) {
  std::vector<WireWriter> settings = pool_settings(node, 19);
  settings.push_back(integer_attribute("count_include_pad", 1));
  return node.add("AveragePool", {node.in(0, node.value().type)}, std::move(settings));
}

}  // namespace rosin::onnx
