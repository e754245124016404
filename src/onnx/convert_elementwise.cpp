// Conversions of ops that work element by element. Read first: convert.hpp.
#include <cmath>
#include <cstring>
#include <limits>

#include <rosin/activation.hpp>
#include <rosin/bits.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "graph/leaf.hpp"
#include "onnx/convert.hpp"
#include "onnx/definition.hpp"

namespace rosin::onnx {
namespace {

/// Before version 7 the second operand stood at an axis of the first one.
Array second(const NodeCall& call) {
  const Array& b = call[1];
  if (call.opset() >= 7 || !call.find("axis")) return b;
  const int rank = call[0].rank();
  const int64_t axis = call.integer("axis", 0);
  const int64_t after = rank - (axis < 0 ? axis + rank : axis) - b.rank();
  if (after < 0) call.refuse("the second operand must fit into the first one", "axis " + std::to_string(axis));
  std::vector<int64_t> sizes(static_cast<size_t>(after), 1);
  for (int64_t size : b.shape()) sizes.push_back(size);
  return reshape(b, sizes);
}

template <Array (*f)(const Array&, const Array&)> Arrays binary(const NodeCall& call) {
  return {f(call[0], second(call))};
}

template <Array (*f)(const Array&, const Array&)> Array folded(const NodeCall& call) {
  Array result = call[0];
  for (size_t i = 1; i < call.input_count(); ++i) result = f(result, call[i]);
  return result;
}

bool is_unsigned(DType type) { return type == UInt8 || type == UInt16 || type == UInt32 || type == UInt64; }

/// Toward zero, as in C.
Array integer_quotient(const Array& a, const Array& b) {
  const DType type = a.dtype();
  if (is_unsigned(type)) return floor_divide(a, b);
  return as(sign(a) * sign(b) * floor_divide(abs(a), abs(b)), type);
}

/// Whether x is that number, as a constant of the model on the CPU.
bool is_known(const Array& x, double value) {
  return is_constant(*x.node()) && x.node()->device == 0 && x.count() == 1 && x.item<double>() == value;
}

}  // namespace

Array worked_out(const std::vector<int64_t>& values, const Shape& shape) {
  return constant(leaf_of<int64_t>(shape, [&](int64_t i) { return values[static_cast<size_t>(i)]; }));
}

Array worked_out(const std::vector<double>& values, const Shape& shape, DType type) {
  if (type == Float64) {
    return constant(leaf_of<double>(shape, [&](int64_t i) { return values[static_cast<size_t>(i)]; }));
  }
  const Array made =
      constant(leaf_of<float>(shape, [&](int64_t i) { return static_cast<float>(values[static_cast<size_t>(i)]); }));
  return as(made, type);
}

std::vector<int64_t> sizes_of(const Array& x) {
  const Shape shape = x.shape();
  return {shape.begin(), shape.end()};
}

int64_t product(std::span<const int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes) result *= size;
  return result;
}

std::vector<int64_t> reversed(const std::vector<int64_t>& list) { return {list.rbegin(), list.rend()}; }

Array along(const Array& x, int dim, int rank) {
  if (dim < 0 || dim >= rank) {
    throw Error(ErrorKind::io,
                "there must be such an axis; got " + std::to_string(rank) + " axes; the model is damaged");
  }
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(dim)] = x.count();
  return reshape(x, sizes);
}

DType stated_type(const NodeCall&, int64_t number) { return array_type(number, "it for what a node gives"); }

Arrays add_values(const NodeCall& call) { return binary<add>(call); }
Arrays sub_values(const NodeCall& call) { return binary<sub>(call); }
Arrays mul_values(const NodeCall& call) { return binary<mul>(call); }
Arrays equal_values(const NodeCall& call) { return binary<eq>(call); }
Arrays less_values(const NodeCall& call) { return binary<lt>(call); }
Arrays greater_values(const NodeCall& call) { return binary<gt>(call); }
Arrays less_or_equal(const NodeCall& call) { return binary<le>(call); }
Arrays greater_or_equal(const NodeCall& call) { return binary<ge>(call); }
Arrays and_values(const NodeCall& call) { return binary<logical_and>(call); }
Arrays or_values(const NodeCall& call) { return binary<logical_or>(call); }
Arrays xor_values(const NodeCall& call) { return binary<logical_xor>(call); }

Arrays div_values(const NodeCall& call) {
  const Array b = second(call);
  return {is_integer(call[0].dtype()) ? integer_quotient(call[0], b) : call[0] / b};
}

/// The result has the type of the base.
Arrays power(const NodeCall& call) {
  const Array& x = call[0];
  const Array y = second(call);
  if (!is_integer(x.dtype())) return {pow(x, as(y, x.dtype()))};
  return {as(round(pow(as(x, Float64), as(y, Float64))), x.dtype())};
}

Arrays remainder(const NodeCall& call) {
  const Array &a = call[0], &b = call[1];
  if (call.integer("fmod", 0) == 0) return {mod(a, b)};
  const DType type = a.dtype();
  if (is_unsigned(type)) return {mod(a, b)};
  return {as(sign(a) * mod(abs(a), abs(b)), type)};
}

Arrays max_values(const NodeCall& call) { return {folded<max>(call)}; }
Arrays min_values(const NodeCall& call) { return {folded<min>(call)}; }
Arrays sum_values(const NodeCall& call) { return {folded<add>(call)}; }
Arrays mean_values(const NodeCall& call) {
  return {folded<add>(call) * (1.0 / static_cast<double>(call.input_count()))};
}

Arrays cast_value(const NodeCall& call) { return {as(call[0], stated_type(call, call.integer("to", 0)))}; }
/// The bytes as they are, as elements of another type.
Arrays bit_cast(const NodeCall& call) {
  const Array x = on_cpu(call[0]);
  const DType type = stated_type(call, call.integer("to", 0));
  if (type == Bool || size_of(type) != size_of(x.dtype())) {
    call.refuse("the types of numbers must be of one size",
                std::string(to_string(x.dtype())) + " as " + to_string(type));
  }
  Array made = fresh_leaf(type, x.shape());
  if (const size_t bytes = bytes_of(type, x.shape())) std::memcpy(made.node()->data(), x.node()->data(), bytes);
  return {made};
}

Arrays cast_like(const NodeCall& call) { return {as(call[0], call[1].dtype())}; }

/// Bounds of relu6 are that op, which calls compute on their way.
Arrays clip(const NodeCall& call) {
  Array x = call[0];
  if (call.opset() < 11) {
    const double widest = static_cast<double>(std::numeric_limits<float>::max());
    const double low = call.real("min", -widest), high = call.real("max", widest);
    return {low == 0 && high == 6 && is_float(x.dtype()) ? relu6(x) : clamp(x, low, high)};
  }
  const bool to_six = call.has(1) && call.has(2) && is_known(call[1], 0) && is_known(call[2], 6);
  if (to_six && is_float(x.dtype())) return {relu6(x)};
  if (call.has(1)) x = max(x, call[1]);
  if (call.has(2)) x = min(x, call[2]);
  return {x};
}

Arrays where_value(const NodeCall& call) { return {where(call[0], call[1], call[2])}; }

Arrays is_infinite(const NodeCall& call) {
  const Array& x = call[0];
  const bool low = call.integer("detect_negative", 1) != 0, high = call.integer("detect_positive", 1) != 0;
  const Array found = is_inf(x);
  if (low && high) return {found};
  if (!low && !high) return {logical_and(found, logical_not(found))};
  return {logical_and(found, low ? lt(x, 0) : gt(x, 0))};
}

Arrays bitwise_and_values(const NodeCall& call) { return binary<bitwise_and>(call); }
Arrays bitwise_or_values(const NodeCall& call) { return binary<bitwise_or>(call); }
Arrays bitwise_xor_values(const NodeCall& call) { return binary<bitwise_xor>(call); }
Arrays shift_bits(const NodeCall& call) {
  return {call.text("direction", "") == "LEFT" ? left_shift(call[0], call[1]) : right_shift(call[0], call[1])};
}

}  // namespace rosin::onnx
