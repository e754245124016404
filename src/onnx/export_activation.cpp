// Activations and softmax in ops of the format. Read beside it: ops/activation.cpp, which says what each computes.
#include <bit>
#include <cmath>

#include "onnx/exports.hpp"
#include "ops/slopes.hpp"

namespace rosin::onnx {
namespace {

std::string times_sigmoid(NodeWriting& node, const std::string& x, const std::string& inner) {
  return node.add("Mul", {x, node.add("Sigmoid", {inner})});
}

/// x where it is above 0, else what `below` is.
std::string above_zero(NodeWriting& node, const std::string& x, const std::string& below) {
  return node.add("Where", {node.add("Greater", {x, node.constant(0)}), x, below});
}

/// alpha * (exp(x) - 1).
std::string scaled_rise(NodeWriting& node, const std::string& alpha, const std::string& x) {
  return node.add("Mul", {alpha, node.add("Sub", {node.add("Exp", {x}), node.constant(1)})});
}

}  // namespace

std::string hard_sigmoid_out(NodeWriting& node) {
  return node.add("HardSigmoid", {node.x()}, {real_attribute("alpha", 1.0f / 6), real_attribute("beta", 0.5f)});
}

std::string log_sigmoid_out(NodeWriting& node) {
  return node.add("Neg", {node.add("Softplus", {node.add("Neg", {node.x()})})});
}

std::string between_ones(NodeWriting& node) {
  return node.add("Clip", {node.x(), node.constant(-1), node.constant(1)});
}
std::string relu_to_six(NodeWriting& node) { return node.add("Clip", {node.x(), node.constant(0), node.constant(6)}); }

std::string leaky_relu_out(NodeWriting& node) {
  if (node.is_number(1)) {
    return node.add("LeakyRelu", {node.x(0)}, {real_attribute("alpha", static_cast<float>(node.number(1)))});
  }
  const std::string x = node.x(0);
  return above_zero(node, x, node.add("Mul", {node.x(1), x}));
}

std::string elu_out(NodeWriting& node) {
  if (node.is_number(1)) {
    return node.add("Elu", {node.x(0)}, {real_attribute("alpha", static_cast<float>(node.number(1)))});
  }
  const std::string x = node.x(0);
  return above_zero(node, x, scaled_rise(node, node.x(1), x));
}

std::string celu_out(NodeWriting& node) {
  const std::string x = node.x(0), alpha = node.x(1);
  return above_zero(node, x, scaled_rise(node, alpha, node.add("Div", {x, alpha})));
}

std::string selu_out(NodeWriting& node) { return node.add("Selu", {node.x()}); }

std::string gelu_out(NodeWriting& node) {
  const std::string x = node.x();
  const std::string bent = node.add("Mul", {node.constant(gelu_cubic), node.add("Mul", {x, x})});
  return times_sigmoid(node, x, node.add("Mul", {x, node.add("Add", {node.constant(gelu_linear), bent})}));
}

std::string gelu_sigmoid_out(NodeWriting& node) {
  const std::string x = node.x();
  return times_sigmoid(node, x, node.add("Mul", {x, node.constant(1.702)}));
}

std::string gelu_erf_out(NodeWriting& node) {
  const std::string x = node.x();
  const std::string erf = node.add("Erf", {node.add("Mul", {x, node.constant(std::sqrt(0.5))})});
  return node.add("Mul", {node.add("Mul", {x, node.constant(0.5)}), node.add("Add", {erf, node.constant(1)})});
}

std::string swish_out(NodeWriting& node) {
  const std::string x = node.x();
  return times_sigmoid(node, x, x);
}

std::string tanh_times(NodeWriting& node) {
  const std::string x = node.x();
  return node.add("Mul", {x, node.add("Tanh", {x})});
}

std::string relu_above(NodeWriting& node) {
  const std::string x = node.x(0);
  return node.add("Where", {node.add("Greater", {x, node.x(1)}), x, node.constant(0)});
}

/// |x| + log(1 + exp(-2 |x|)) - log(2).
std::string log_cosh_out(NodeWriting& node) {
  const std::string size = node.add("Abs", {node.x()});
  const std::string rest = node.add("Softplus", {node.add("Mul", {size, node.constant(-2)})});
  return node.add("Sub", {node.add("Add", {size, rest}), node.constant(std::log(2.0))});
}

std::string mish_out(NodeWriting& node) {
  const std::string x = node.x();
  return node.add("Mul", {x, node.add("Tanh", {node.add("Softplus", {x})})});
}

std::string tanh_shrink(NodeWriting& node) {
  const std::string x = node.x();
  return node.add("Sub", {x, node.add("Tanh", {x})});
}

std::string soft_shrink(NodeWriting& node) {
  const std::string x = node.x(0), by = node.x(1);
  const std::string below = node.add("Less", {x, node.add("Neg", {by})});
  const std::string inner =
      node.add("Where", {below, node.add("Add", {x, by}), node.add("Mul", {x, node.constant(0)})});
  return node.add("Where", {node.add("Greater", {x, by}), node.add("Sub", {x, by}), inner});
}

std::string masked_product_out(NodeWriting& node) {
  const std::string weight = node.x(0), zero = node.constant(0);
  return node.add("Where", {node.add("Equal", {weight, zero}), zero, node.add("Mul", {weight, node.x(1)})});
}

std::string softmax_out(NodeWriting& node) {
  const uint64_t dims = node.attributes<ReductionAttributes>().dims;
  if (std::popcount(dims) != 1) node.refuse("along several dims");
  const int64_t axis = axis_of(std::countr_zero(dims), node.rank());
  return node.add(node.row().file_op, {node.in(0)}, {integer_attribute("axis", axis)});
}

}  // namespace rosin::onnx
