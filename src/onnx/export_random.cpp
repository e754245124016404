// Random draws in ops of the format: each run of the file draws anew, from the runtime's generator.
#include <cmath>

#include "onnx/definition.hpp"
#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

/// Numbers in [0, 1): some runtimes round some of theirs up to 1.
std::string uniform(NodeWriting& node, DType type) {
  const std::string sizes = node.add("Expand", {node.file.number(type, 0.0), node.shape()});
  const std::string drawn = node.add("RandomUniformLike", {sizes}, {integer_attribute("dtype", type_number(type))});
  return node.add("Min", {drawn, node.file.number(type, 1 - std::ldexp(1.0, type == Float64 ? -53 : -24))});
}

}  // namespace

std::string uniform_out(NodeWriting& node) { return uniform(node, node.value().type); }

std::string integers_out(NodeWriting& node) {
  const std::string low = node.in(0, Float64), high = node.in(1, Float64);
  const std::string wide = node.add("Mul", {uniform(node, Float64), node.add("Sub", {high, low})});
  return node.file.cast(node.add("Add", {node.add("Floor", {wide}), low}), node.value().type);
}

/// The order in which numbers stand that are drawn.
std::string permutation_out(NodeWriting& node) {
  const std::vector<std::string> sorted =
      node.file.add_several("TopK", {uniform(node, Float64), node.shape()}, 2, {integer_attribute("axis", 0)});
  return node.file.cast(sorted[1], node.value().type);
}

}  // namespace rosin::onnx
