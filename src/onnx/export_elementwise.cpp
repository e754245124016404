// Elementwise ops in ops of the format. Each gives its result in the type that it computes in, or Bool.
#include <cmath>
#include <numbers>

#include "onnx/definition.hpp"
#include "onnx/exports.hpp"

namespace rosin::onnx {

std::string plain(NodeWriting& node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node.operands(); ++i) inputs.push_back(node.x(i));
  return node.add(node.row().file_op, std::move(inputs));
}

std::string square_out(NodeWriting& node) {
  const std::string x = node.x();
  return node.add("Mul", {x, x});
}

std::string cos_of_turns_out(NodeWriting& node) {
  return node.add("Cos", {node.add("Mul", {node.x(), node.constant(2 * std::numbers::pi)})});
}

std::string root_below_one(NodeWriting& node) { return node.add("Reciprocal", {node.add("Sqrt", {node.x()})}); }

std::string clamp_out(NodeWriting& node) {
  return node.add("Min", {node.add("Max", {node.x(0), node.x(1)}), node.x(2)});
}

std::string truncated(NodeWriting& node) {
  const std::string x = node.x();
  if (!is_float(node.computed())) return x;
  return node.add("Mul", {node.add("Sign", {x}), node.add("Floor", {node.add("Abs", {x})})});
}

std::string rounded_alike(NodeWriting& node) { return is_float(node.computed()) ? plain(node) : node.x(); }

std::string not_equal(NodeWriting& node) { return node.add("Not", {node.add("Equal", {node.x(0), node.x(1)})}); }

std::string is_nan_out(NodeWriting& node) { return node.add("IsNaN", {node.in(0, Float32)}); }
std::string is_infinite_out(NodeWriting& node) { return node.add("IsInf", {node.in(0, Float32)}); }
std::string finite_out(NodeWriting& node) {
  const std::string x = node.in(0, Float32);
  return node.add("Not", {node.add("Or", {node.add("IsNaN", {x}), node.add("IsInf", {x})})});
}

std::string cube_root(NodeWriting& node) {
  const std::string x = node.x();
  return node.add("Mul", {node.add("Sign", {x}), node.add("Pow", {node.add("Abs", {x}), node.constant(1.0 / 3)})});
}

std::string power_of_two(NodeWriting& node) { return node.add("Pow", {node.constant(2), node.x()}); }
std::string exp_less_one(NodeWriting& node) { return node.add("Sub", {node.add("Exp", {node.x()}), node.constant(1)}); }
std::string log_of_base_two(NodeWriting& node) {
  return node.add("Div", {node.add("Log", {node.x()}), node.constant(std::log(2.0))});
}
std::string log_of_base_ten(NodeWriting& node) {
  return node.add("Div", {node.add("Log", {node.x()}), node.constant(std::log(10.0))});
}
std::string log_sum(const NodeWriting& node, DType type, const std::string& x, const std::string& y) {
  const std::string behind = node.add("Neg", {node.add("Abs", {node.add("Sub", {x, y})})});
  const std::string sum = node.add("Add", {node.add("Max", {x, y}), node.add("Softplus", {behind})});
  const std::string twice = node.add("Add", {x, node.file.number(type, std::numbers::ln2)});
  return node.add("Where", {node.add("Equal", {x, y}), twice, sum});
}

std::string log_of_sum(NodeWriting& node) { return log_sum(node, node.computed(), node.x(0), node.x(1)); }
std::string log_of_more(NodeWriting& node) { return node.add("Log", {node.add("Add", {node.x(), node.constant(1)})}); }

/// The angle of (x, y) by the tangent of the half plane that it lies in.
std::string angle_out(NodeWriting& node) {
  const std::string y = node.x(0), x = node.x(1), zero = node.constant(0);
  const std::string angle = node.add("Atan", {node.add("Div", {y, x})});
  const std::string below = node.add("Less", {y, zero}), behind = node.add("Less", {x, zero});
  const std::string turn =
      node.add("Where", {below, node.constant(-std::numbers::pi), node.constant(std::numbers::pi)});
  const std::string turned = node.add("Where", {behind, node.add("Add", {angle, turn}), angle});
  const std::string none = node.add("And", {node.add("Equal", {x, zero}), node.add("Equal", {y, zero})});
  return node.add("Where", {none, zero, turned});
}

/// The larger size times the root of 1 + ratio^2, where two equal ones, which may be 0 or infinite, have the ratio 1.
std::string hypotenuse(NodeWriting& node) {
  const std::string a = node.add("Abs", {node.x(0)}), b = node.add("Abs", {node.x(1)}), one = node.constant(1);
  const std::string high = node.add("Max", {a, b}), low = node.add("Min", {a, b});
  const std::string ratio = node.add("Where", {node.add("Equal", {a, b}), one, node.add("Div", {low, high})});
  const std::string sum = node.add("Add", {node.add("Mul", {ratio, ratio}), one});
  return node.add("Mul", {high, node.add("Sqrt", {sum})});
}

std::string modulo(NodeWriting& node) {
  const std::string a = node.x(0), b = node.x(1);
  if (!is_float(node.computed())) return node.add("Mod", {a, b});
  return node.add("Sub", {a, node.add("Mul", {b, node.add("Floor", {node.add("Div", {a, b})})})});
}

std::string floored_quotient(NodeWriting& node) {
  const std::string a = node.x(0), b = node.x(1);
  if (is_float(node.computed())) return node.add("Floor", {node.add("Div", {a, b})});
  return node.add("Div", {node.add("Sub", {a, node.add("Mod", {a, b})}), b});
}

std::string where_out(NodeWriting& node) { return node.add("Where", {node.in(0, Bool), node.x(1), node.x(2)}); }

std::string bitwise_out(NodeWriting& node) {
  if (node.file.opset() < 18) node.refuse("the format has it from opset 18 on");
  return plain(node);
}

/// Of a count as large as the number of bits the format says nothing: it is done in two steps that are smaller.
std::string shifted_out(NodeWriting& node) {
  const DType type = node.value().type;
  const bool is_unsigned = type == UInt8 || type == UInt16 || type == UInt32 || type == UInt64;
  if (!is_unsigned && node.file.opset() < 28) {
    node.refuse("the format shifts unsigned integers alone before opset 28");
  }
  const auto most = static_cast<int64_t>(8 * size_of(type)) - 1;
  const std::vector<WireWriter> direction{text_attribute("direction", node.row().file_op)};
  const auto shift = [&](const std::string& x, const std::string& count) {
    return node.add("BitShift", {x, count}, direction);
  };
  const std::string x = node.in(0, type);
  if (node.is_number(1) && node.number(1) <= static_cast<double>(most)) {
    return node.file.cast(shift(x, node.in(1, type)), node.computed());
  }
  std::string count = node.in(1, Int64);
  const std::string limit = node.file.number(Int64, static_cast<double>(most)), none = node.file.number(Int64, 0);
  if (type == UInt64)
    count = node.add(
        "Where", {node.add("Less", {count, none}), node.file.number(Int64, 2.0 * static_cast<double>(most)), count});
  const std::string first = node.add("Min", {count, limit});
  const std::string second = node.add("Min", {node.add("Sub", {count, first}), limit});
  const std::string moved = shift(shift(x, node.file.cast(first, type)), node.file.cast(second, type));
  return node.file.cast(moved, node.computed());
}

std::string cast_out(NodeWriting& node) { return node.in(0, node.value().type); }

}  // namespace rosin::onnx
