// Op: what can be recorded. One value per op, made in one place (src/ops), listed in the registry by its maker.
// Read next: body.hpp (bodies of elementwise ops), record.hpp (recording), ops/ (all ops).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/array.hpp>

#include "graph/attributes.hpp"
#include "graph/node.hpp"
#include "scalar/body.hpp"

namespace rosin {

struct Reducer;

/// The closed list that lowering knows.
enum class Kind : uint8_t {
  leaf,         // data
  scalar,       // a C++ number: a run-time argument of plans, never part of a key
  argument,     // argument of a gradient call: the identity, free in a plan
  elementwise,  // body on broadcast operands
  draw,         // numbers in [0, 1) that follow from key, counter and the place of the element
  reduction,    // over a set of dims (ReductionAttributes), results keep size 1
  movement,     // elements change place (MovementAttributes), views where possible
  gather,
  scatter,
  contraction,  // matmul, convolution: plain definition and vendor call
  window,       // pooling
  sort,
  scan,
  random,
  routine,   // of whole matrices, lines or sequences (Routine): a device is given those alone that its library computes
  part,      // one result of its operand, an op of several (PartAttributes)
  transfer,  // to another device: done at the call, never part of a plan
  attention  // of sequences, in blocks (AttentionAttributes)
};

/// What a gradient rule sees: the recorded op, its value, and the gradient of the loss by its value.
class Backward {
 public:
  Array in(int i) const {
    const bool is_number = i < Node::max_positions && (node_->scalars >> i & 1);
    return is_number ? number(node_->number(i), node_->dtype) : handle(node_->arrays()[static_cast<size_t>(i)]);
  }
  int operands() const { return node_->operand_count(); }
  Array out() const { return handle(node_); }
  /// Of an op of several results: number k of them, of this type and shape.
  Array out(int k, DType type, const Shape& shape) const;
  /// The gradient of the loss by that; nothing where the loss does not depend on it.
  const Array& gradient_of(int k) const { return slopes_[static_cast<size_t>(k)]; }
  const Node& node() const { return *node_; }
  template <class T> T attributes() const { return node_->attributes.as<T>(); }
  /// Whether operand i reaches an argument of the gradient call; others need no gradient.
  bool needs(int i) const { return static_cast<size_t>(i) < given_.size() && needs_[static_cast<size_t>(i)] != 0; }
  /// States the gradient by operand i; broadcast dims are summed by the walk.
  void give(int i, Array g) {
    if (needs(i)) given_[static_cast<size_t>(i)] = std::move(g);
  }

 private:
  friend class ReverseWalk;
  /// `needs`: of each operand that is an array; `given` is filled in.
  Backward(Node* node, const Array& cotangent, const char* needs, std::span<Array> given)
      : node_(node), needs_(needs), given_(given), gradient(cotangent) {}
  static Array handle(Node* node) {
    add_count(node, one_user);
    return Array::adopt(node);
  }
  static Array number(const ScalarValue& value, DType type);
  Node* node_;
  const char* needs_;
  std::span<Array> given_;
  std::span<const Array> results_, slopes_;  // of an op of several results, where there are any

 public:
  Array gradient;  // of the loss by out(), shaped like out(); or a number, where the op takes one. Of one result
};

using GradientRule = void (*)(Backward& b);

/// What an elementwise op records where operands are complex: ops on their parts.
using ComplexForm = Array (*)(std::span<const Array> operands);

/// What an elementwise op of two operands records where the one beside x is a C++ number that x's integer type cannot
/// hold: the first operand or the second, above what the type holds or below it.
using BeyondForm = Array (*)(const Array& x, bool number_first, bool above);

/// How the element type of the result follows from the operands' common type.
enum class TypeRule : uint8_t {
  same,      // the common type
  number,    // the common type, but Int32 for Bool, which counts as 0 and 1 in arithmetic
  floating,  // the common type if a float, else Float32
  boolean,   // Bool
  index,     // Int32
  attribute  // stated by the recording function
};

/// Where the op suite draws inputs from: an interval in which the op is smooth.
struct SampleRange {
  double low = -2;
  double high = 2;
};

/// What an index out of range means to an op: throws. Attributes are those of its node.
using IndexRefusal = void (*)(const Attributes& attributes, int64_t index);

struct Op {
  static constexpr int any = -1;  // as `operands`
  std::string_view name;
  Kind kind = Kind::leaf;
  uint16_t id = 0;  // place in the registry; part of keys
  int operands = 0;
  int results = 1;  // several: the node has no value, nodes of the kind `part` have one result each
  std::string_view doc;
  TypeRule type_rule = TypeRule::same;
  const Reducer* reducer = nullptr;  // reductions and scans: how elements are combined
  Movement movement = Movement::none;
  Scatter scatter = Scatter::none;
  Scan scan = Scan::none;
  Contraction contraction = Contraction::none;
  Window window = Window::none;
  Routine routine = Routine::none;
  Draw draw = Draw::none;
  bool mask_first = false;              // operand 0 is a Bool mask and takes no part in the common type (where)
  uint8_t attribute_words = 0;          // 8-byte words of attributes that take part in comparisons
  bool sizes_in_attributes = false;     // attributes belong to the shape key, not to the structure key
  ElementBody body{};                   // elementwise only
  GradientRule gradient = nullptr;      // null: not differentiable, the gradient stops
  bool takes_number = false;            // the rule also holds where the gradient is a C++ number: all elements are that
  ComplexForm complex_form = nullptr;   // null: not defined for complex numbers
  BeyondForm beyond_form = nullptr;     // null: such a number is an Error
  IndexRefusal refuse_index = nullptr;  // null: as its kind says it
  SampleRange range{};

  Op& with_gradient(GradientRule rule) {
    gradient = rule;
    return *this;
  }
  /// The same for a rule that only adds, multiplies, divides or negates the gradient: a number stays one then.
  Op& with_arithmetic_gradient(GradientRule rule) {
    takes_number = true;
    return with_gradient(rule);
  }
  Op& with_complex(ComplexForm form) {
    complex_form = form;
    return *this;
  }
  Op& with_beyond(BeyondForm form) {
    beyond_form = form;
    return *this;
  }
  /// The public function of one array that records this op alone; models print it as `shown`, or by the op's name.
  Op& called(Array (*function)(const Array&), std::string_view shown = {});
  Op& samples(double low, double high) {
    range = {low, high};
    return *this;
  }
};

/// All ops, in the order of their making (static initialisation); fixed once main starts.
const std::vector<const Op*>& registry();
/// Lists an op and gives it its id; called by makers only.
Op* register_op(const Op& op);
/// Names a public function of one array, for models that print it; beside the function's definition, at namespace
/// scope.
bool name_function(Array (*function)(const Array&), std::string_view name);
/// Its name; empty where the function is not the library's.
std::string_view name_of(Array (*function)(const Array&)) noexcept;
std::vector<std::string_view> function_names();

/// Error (internal): `who`, an executor or a pass, has no way to do this op.
[[noreturn]] void throw_unknown(const Op& op, std::string_view who);
/// The op of that name, or null.
const Op* find_op(std::string_view name);

}  // namespace rosin
