// What gradients and rules of optimisation record in ops of the format. Read beside it: ops/slopes.cpp, ops/pool.cpp,
// ops/moments.cpp, which say what each computes.
#include "ops/slopes.hpp"

#include <algorithm>
#include <cstdint>

#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

std::string product(NodeWriting& node, const std::string& a, const std::string& b) { return node.add("Mul", {a, b}); }
std::string sum(NodeWriting& node, const std::string& a, const std::string& b) { return node.add("Add", {a, b}); }
std::string rest_of_one(NodeWriting& node, const std::string& x) { return node.add("Sub", {node.constant(1), x}); }
std::string flat(NodeWriting& node, const std::string& x) { return node.add("Reshape", {x, node.file.integers({-1})}); }

std::string moment(NodeWriting& node, const std::string& now) {
  return sum(node, product(node, node.x(2), node.x(0)), product(node, node.x(3), now));
}

/// scale*mean/(sqrt(square) + epsilon) of four operands from one on.
std::string by_root(NodeWriting& node, int first) {
  const std::string below = sum(node, node.add("Sqrt", {node.x(first + 1)}), node.x(first + 3));
  return node.add("Div", {product(node, node.x(first + 2), node.x(first)), below});
}

/// Places of each window's first largest element, counted in the whole array.
std::string largest_places(NodeWriting& node) {
  return flat(node, node.file.add_several("MaxPool", {node.in(0)}, 2, pool_settings(node, 10))[1]);
}

}  // namespace

std::string relu_slope_out(NodeWriting& node) {
  const std::string zero = node.constant(0);
  return node.add("Where", {node.add("Greater", {node.x(1), zero}), node.x(0), zero});
}

std::string sigmoid_slope_out(NodeWriting& node) {
  const std::string y = node.x(1);
  return product(node, node.x(0), product(node, y, rest_of_one(node, y)));
}

std::string tanh_slope_out(NodeWriting& node) {
  const std::string y = node.x(1);
  return product(node, node.x(0), rest_of_one(node, product(node, y, y)));
}

std::string gelu_slope_out(NodeWriting& node) {
  const std::string x = node.x(1), squared = product(node, x, x);
  const auto line = [&](double bend) {
    return product(node, x, sum(node, node.constant(gelu_linear), product(node, node.constant(bend), squared)));
  };
  const std::string s = node.add("Sigmoid", {line(gelu_cubic)});
  const std::string t = product(node, line(3 * gelu_cubic), rest_of_one(node, s));
  return product(node, node.x(0), product(node, s, sum(node, node.constant(1), t)));
}

std::string running_mean_out(NodeWriting& node) { return moment(node, node.x(1)); }
std::string running_square_out(NodeWriting& node) {
  const std::string now = node.x(1);
  return moment(node, product(node, now, now));
}
std::string scaled_by_root_out(NodeWriting& node) { return by_root(node, 0); }
std::string moved_by_root_out(NodeWriting& node) { return node.add("Sub", {node.x(0), by_root(node, 1)}); }

/// |x| where the label is wrong, as much as it is, and log(1 + exp(-|x|)).
std::string logit_entropy_out(NodeWriting& node) {
  const std::string x = node.x(0), y = node.x(1), zero = node.constant(0), size = node.add("Abs", {x});
  const std::string wrong = node.add("Where", {node.add("Greater", {x, zero}), rest_of_one(node, y), y});
  const std::string right = node.add("Equal", {wrong, zero});
  const std::string line = node.add("Where", {right, zero, product(node, wrong, size)});
  return sum(node, line, node.add("Softplus", {node.add("Neg", {size})}));
}

std::string max_pool_pick_out(NodeWriting& node) {
  return reshaped(node, node.add("Gather", {flat(node, node.in(1)), largest_places(node)}));
}

std::string max_pool_slope_out(NodeWriting& node) {
  const std::string count = node.add("Shape", {flat(node, node.in(0))});
  const std::string zeros = node.add("Expand", {node.file.number(node.value().type, 0.0), count});
  return reshaped(node, node.add("ScatterElements", {zeros, largest_places(node), flat(node, node.in(2))},
                                 {text_attribute("reduction", "add")}));
}

/// Each image alone, with a kernel of equal weights.
std::string mean_pool_slope_out(NodeWriting& node) {
  const auto window = node.attributes<WindowAttributes>();
  std::vector<Size> images{{0, -1}, {0, 1}}, kernel{{0, 1}, {0, 1}};
  double count = 1;
  for (int d = node.rank() - 3; d >= 0; --d) {
    images.push_back(node.operand(0).sizes[static_cast<size_t>(d)]);
    kernel.push_back({0, window.window[d]});
    count *= window.window[d];
  }
  FileGraph& file = node.file;
  const std::string weights = file.add("Expand", {file.number(node.value().type, 1 / count), file.sizes(kernel)});
  const std::string apart = node.add("Reshape", {node.in(0), file.sizes(images)});
  return reshaped(node, spread_out(node, apart, weights, std::vector<int64_t>(window.window, window.window + 3)));
}

/// The convolution of images whose channels are observations, with slopes for kernels, which exchanges strides and
/// dilations. Elements that strides leave out come last: they are cut off.
std::string conv_kernels_out(NodeWriting& node) {
  const auto window = node.attributes<WindowAttributes>();
  const int rank = node.rank();
  const std::vector<Size> x(node.operand(0).sizes.rbegin(), node.operand(0).sizes.rend());
  std::vector<int64_t> groups_first{2, 1, 0}, exchanged{1, 0}, axes;
  std::vector<Size> split{x[0], {0, window.groups}, {0, x[1].rest / window.groups}}, joined{split[2], {0, -1}};
  for (int axis = 2; axis < rank; ++axis) {
    split.push_back(x[static_cast<size_t>(axis)]);
    joined.push_back(split.back());
    groups_first.push_back(axis + 1);
    exchanged.push_back(axis);
    axes.push_back(axis);
  }
  FileGraph& file = node.file;
  const auto turned = [&](const std::string& array, const std::vector<int64_t>& order) {
    return file.add("Transpose", {array}, {integers_attribute("perm", order)});
  };
  const std::string parts = turned(file.add("Reshape", {node.in(0), file.sizes(split)}), groups_first);
  const std::string images = file.add("Reshape", {parts, file.sizes(joined)});
  WindowAttributes inner = window;
  std::swap(inner.stride, inner.dilation);
  const std::string all = file.add("Conv", {images, turned(node.in(1), exchanged)}, convolution_settings(node, inner));
  std::vector<int64_t> begins, ends;
  for (int d = rank - 3; d >= 0; --d) {
    const int64_t size = node.sizes()[static_cast<size_t>(d)].rest;
    begins.push_back(window.flipped != 0 ? size - 1 : 0);
    ends.push_back(window.flipped != 0 ? INT64_MIN : size);
  }
  const std::vector<int64_t> steps(axes.size(), window.flipped != 0 ? -1 : 1);
  const std::string kernels =
      file.add("Slice", {all, file.integers(begins), file.integers(ends), file.integers(axes), file.integers(steps)});
  return turned(kernels, exchanged);
}

}  // namespace rosin::onnx
