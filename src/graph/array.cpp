// Array: making leaves and reading values. Reading starts evaluation through the hook.
#include <rosin/array.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

#include <rosin/error.hpp>

#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "graph/transfer.hpp"
#include "scalar/convert.hpp"

namespace rosin {
namespace {

const Op& make_leaf_op(const char* name, Kind kind, int operands, const char* doc, GradientRule rule = nullptr) {
  Op op;
  op.name = name;
  op.kind = kind;
  op.operands = operands;
  op.doc = doc;
  op.gradient = rule;
  return *register_op(op);
}

}  // namespace

const Op& leaf_op = make_leaf_op("leaf", Kind::leaf, 0, "data");
const Op& scalar_op = make_leaf_op("scalar", Kind::scalar, 0, "a C++ number");
const Op& argument_op = make_leaf_op("argument", Kind::argument, 1, "argument of a gradient call: the identity",
                                     [](Backward& b) { b.give(0, b.gradient); });
const Op& part_op = []() -> const Op& {
  Op op;
  op.name = "part";
  op.kind = Kind::part;
  op.operands = 1;
  op.doc = "one result of an op of several";
  op.attribute_words = 1;
  op.gradient = [](Backward&) {};  // the walk back asks the rule of the op, once for all results
  return *register_op(op);
}();

namespace {

Node* make_ready(const Op& op, DType type, const Shape& shape) {
  Context& context = Context::current();
  context.make_room();
  Node* node = context.start(op, NodeState::ready, type, scalar_type(type), 0);
  node->set_sizes(shape.begin(), shape.rank());
  return node;
}

Node* make_scalar(DType type, ScalarValue value, bool weak) {
  Node* node = make_ready(scalar_op, type, {});
  node->attributes = Attributes::of(value);
  node->weak = weak;
  return node;
}

}  // namespace

size_t bytes_of(DType type, const Shape& shape) { return static_cast<size_t>(shape.count()) * size_of(type); }

Array leaf(Memory* buffer, DType type, const Shape& shape) {
  Node* node = make_ready(leaf_op, type, shape);
  node->buffer = buffer;
  node->device = static_cast<uint8_t>(buffer->device);
  node->attributes = {};
  return Array::adopt(node);
}

Array constant(Array x) {
  x.node()->attributes.bytes[0] = 1;
  return x;
}

Array fresh_leaf(DType type, const Shape& shape) {
  return leaf(hooks.allocate({.bytes = bytes_of(type, shape)}), type, shape);
}

void write_number(const Node& number, void* target, DType type) {
  const ScalarValue value = scalar_value(number);
  if (is_float(number.dtype)) return convert_elements(target, type, &value.real, DType::Float64, 1);
  convert_elements(target, type, &value.integer, number.dtype == DType::UInt64 ? DType::UInt64 : DType::Int64, 1);
}

Array in_scope(const Array& x) {
  const Context& context = Context::current();
  return context.device == x.node()->device ? x : transferred(x, context.device);
}

Array table(const Array& x) {
  if (Context::current().device == x.node()->device) return x;
  eval(x);
  x.node()->settled = true;
  return in_scope(x);
}

Array on_cpu(const Array& x) {
  if (x.node()->device != 0) return transferred(x, 0);
  eval(x);
  return x;
}

Array argument(const Array& x) {
  const Array* operands[] = {&x};
  Array made = record(argument_op, operands, x.dtype(), x.shape());
  made.node()->weak = x.node()->weak;
  return made;
}

Array Backward::out(int k, DType type, const Shape& shape) const {
  const Array& recorded = results_[static_cast<size_t>(k)];
  return recorded.is_nothing() ? record_part(node_, k, {type, shape}) : recorded;
}

Array Backward::number(const ScalarValue& value, DType type) {
  const bool whole = !is_float(type) && !is_complex(type);
  return Array::adopt(make_scalar(whole ? DType::Int32 : DType::Float32, value, true));
}

Array scalar_argument(int64_t value) {
  return Array::adopt(make_scalar(DType::Int64, {static_cast<double>(value), value}, false));
}

Node* Array::weak_bool(bool value) { return make_scalar(DType::Bool, {value ? 1.0 : 0.0, value}, true); }
Node* Array::weak_int(int64_t value) {
  const bool fits = value == static_cast<int32_t>(value);
  return make_scalar(fits ? DType::Int32 : DType::Int64, {static_cast<double>(value), value}, true);
}
Node* Array::weak_unsigned(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return weak_int(static_cast<int64_t>(value));
  return make_scalar(DType::UInt64, {static_cast<double>(value), static_cast<int64_t>(value)}, true);
}
Node* Array::weak_float(double value) {
  const bool fits = value > -9e18 && value < 9e18;
  return make_scalar(DType::Float32, {value, fits ? static_cast<int64_t>(value) : 0}, true);
}

void Array::check_count(size_t count, const Shape& shape) {
  if (static_cast<int64_t>(count) == shape.count()) return;
  throw Error(ErrorKind::shape, "array: the shape " + to_string(shape) + " has " + std::to_string(shape.count()) +
                                    " elements; got " + std::to_string(count) + " values");
}

Node* Array::copied(const void* values, size_t count, DType type, const Shape& shape) {
  check_count(count, shape);
  Array made = fresh_leaf(type, shape);
  if (count > 0) std::memcpy(made.node()->data(), values, count * size_of(type));
  return made.leak();
}

Node* Array::literal(const void* values, size_t count, DType type, const Shape& shape) {
  return constant(adopt(copied(values, count, type, shape))).leak();
}

void Array::retain(Node* node) noexcept { add_count(node, one_user); }
void Array::release(Node* node) noexcept { drop_count(node, one_user); }

namespace {

const Node& checked(const Node* node, const char* what) {
  if (node) return *node;
  throw Error(ErrorKind::argument,
              std::string(what) + ": the array is nothing (an empty handle); give it a value first");
}

}  // namespace

namespace {

[[noreturn]] void throw_scalar_indexing() {
  throw Error(ErrorKind::device,
              "Scalar indexing is disallowed.\nInvocation of item resulted in scalar indexing of a GPU array.\n"
              "This is typically caused by calling an iterating implementation of a method.\n"
              "Such implementations *do not* execute on the GPU, but very slowly on the CPU,\n"
              "and therefore should be avoided.\n\n"
              "If you want to allow scalar iteration, use `allowscalar(true)`\n"
              "to enable scalar iteration in this thread or for the operations in question,\n"
              "or copy the array with `cpu(x)`.");
}

}  // namespace

Shape Array::shape() const { return checked(node_, "shape").shape(); }
int Array::rank() const { return checked(node_, "rank").rank; }
int64_t Array::count() const { return checked(node_, "count").count(); }
int64_t Array::size(int dim) const {
  const Node& node = checked(node_, "size");
  return dim >= 0 && dim < node.rank ? node.sizes[dim] : node.shape()[dim];
}
DType Array::dtype() const { return checked(node_, "dtype").dtype; }

namespace {

void evaluate(const Array& x, Moment moment) {
  checked(x.node(), "eval");
  Context& context = Context::current();
  if (!x.node()->ready()) hooks.evaluate(context, x.node(), moment);
  else if (x.node()->buffer) wait_for_values(*x.node()->buffer);
}

}  // namespace

void eval(const Array& x) { evaluate(x, Moment::read); }
void eval(Array&& x) { evaluate(x, Moment::last_use); }

void eval() { hooks.evaluate(Context::current(), nullptr, Moment::read); }

namespace {

/// A complex number has no real value: parts are not dropped unasked.
void check_real(const char* what, DType from, DType to) {
  if (!is_complex(from) || is_complex(to)) return;
  throw Error(ErrorKind::dtype, std::string(what) + ": complex elements are not real numbers; got " + to_string(from) +
                                    "; read real(z), imag(z), or both with view_as_real(z)");
}

}  // namespace

void Array::evaluate_last() const {
  if (node_ && node_->device == 0 && !is_scalar(*node_)) evaluate(*this, Moment::last_use);
}

void Array::read_item(void* value, DType type) const {
  if (checked(node_, "item").count() != 1) {
    throw Error(ErrorKind::shape, "item: the array must have one element; got " + to_string(shape()) +
                                      "; name one with item(i, ...) or copy all with to_vector()");
  }
  read_all(value, 1, type);
}

void allowscalar(bool on) { Context::current().allows_scalar = on; }

double Array::read_element(std::span<const int64_t> at) const {
  const Node& node = checked(node_, "item");
  if (at.size() != node.rank) {
    throw Error(ErrorKind::shape, "item: an index for each dim is needed; got " + std::to_string(at.size()) +
                                      " indices for " + to_string(shape()));
  }
  check_real("item", node.dtype, DType::Float64);
  int64_t offset = 0, stride = 1;
  for (int d = 0; d < node.rank; ++d) {
    const int64_t index = at[static_cast<size_t>(d)], i = index < 0 ? index + node.sizes[d] : index;
    if (i < 0 || i >= node.sizes[d]) {
      throw Error(ErrorKind::argument, "item: index " + std::to_string(index) + " is out of range in dim " +
                                           std::to_string(d) + "; the shape is " + to_string(shape()) +
                                           "; indices count from 0");
    }
    offset += i * stride;
    stride *= node.sizes[d];
  }
  if (is_scalar(node)) return scalar_value(node).real;
  if (node.device != 0) {
    if (!Context::current().allows_scalar) throw_scalar_indexing();
    return transferred(*this, 0).read_element(at);
  }
  eval(*this);
  double value;
  const auto* bytes = static_cast<const unsigned char*>(node_->data());
  convert_elements(&value, DType::Float64, bytes + static_cast<size_t>(offset) * size_of(node.dtype), node.dtype, 1);
  return value;
}

void Array::read_all(void* target, size_t count, DType type) const {
  const Node& node = checked(node_, "copy_to");
  if (static_cast<int64_t>(count) != node.count()) {
    throw Error(ErrorKind::shape, "copy_to: the target must have as many elements as the array " + to_string(shape()) +
                                      "; got " + std::to_string(count));
  }
  check_real("copy_to", node.dtype, type);
  if (is_scalar(node)) return write_number(node, target, type);
  if (node.device != 0) return transferred(*this, 0).read_all(target, count, type);
  eval(*this);
  convert_elements(target, type, node.data(), node.dtype, node.count());
}

}  // namespace rosin
