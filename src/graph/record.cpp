// Recording: type and shape rules, and the making of nodes.
#include "graph/record.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include <rosin/error.hpp>

#include "base/sizes.hpp"
#include "graph/autocast.hpp"
#include "graph/context.hpp"
#include "graph/follow.hpp"
#include "graph/hooks.hpp"
#include "graph/integers.hpp"
#include "graph/kinds.hpp"
#include "graph/leaf.hpp"
#include "graph/recording_site.hpp"
#include "graph/refuse_type.hpp"
#include "graph/watch.hpp"

namespace rosin {
namespace {

using Operands = std::span<const Array* const>;

/// Float64 comes from numbers such as 1.0 more often than it is meant.
std::string float_cure(DType a, DType b) {
  const std::string cast = "convert one with cast(x, " + std::string(to_string(a == DType::Float64 ? b : a)) + ")";
  const bool wide = a == DType::Float64 || b == DType::Float64;
  return wide ? cast + "; arrays of numbers such as 1.0 are Float64: write 1.0f for Float32" : cast;
}

[[noreturn]] __attribute__((cold)) void throw_float_mix(const Op& op, DType a, DType b) {
  throw Error(ErrorKind::dtype, std::string(op.name) + ": two different float types in one op; got " + to_string(a) +
                                    " and " + to_string(b) + "; " + float_cure(a, b));
}

DType common_of(const Op& op, DType a, DType b) {
  if (a == b) return a;
  const bool complex_a = is_complex(a), complex_b = is_complex(b);
  if (complex_a || complex_b) return complex_a ? a : b;
  const bool float_a = is_float(a), float_b = is_float(b);
  if (float_a && float_b) {
    if (promotes()) return wider_float(a, b);
    throw_float_mix(op, a, b);
  }
  if (float_a) return a;
  if (float_b) return b;
  return common_integer(op.name, a, b);
}

/// A weak number meets a type: it follows, unless a float meets integers (then Float32).
DType join_weak(DType strong, DType weak) {
  if (is_float(weak) && !is_float(strong) && !is_complex(strong)) return weak;
  if (strong == DType::Bool) return weak;
  return strong;
}

/// Two C++ numbers: the type that both would have alone.
DType join_numbers(const Op& op, DType a, DType b) {
  if (!is_integer(a) || !is_integer(b)) return common_of(op, a, b);
  return a == DType::UInt64 || b == DType::UInt64 ? DType::UInt64 : common_integer(op.name, a, b);
}

DType result_type(const Op& op, DType common) {
  switch (op.type_rule) {
    case TypeRule::number: return common == DType::Bool ? DType::Int32 : common;
    case TypeRule::floating: return is_float(common) || is_complex(common) ? common : DType::Float32;
    case TypeRule::boolean: return DType::Bool;
    case TypeRule::index: return DType::Int32;
    default: return common;
  }
}

__attribute__((cold, noreturn)) void throw_not_defined(const Op& op, DType type) {
  const auto& loops = op.body.loops;
  if (loops[static_cast<int>(ScalarType::boolean)] && !loops[static_cast<int>(ScalarType::int32)]) {
    throw Error(ErrorKind::dtype, std::string(op.name) + ": the operands must be Bool; got " + to_string(type) +
                                      "; compare first, e.g. (a > 0) & (b != 0)");
  }
  refuse_type(op.name, type);
}

/// Complex operands: what the op makes of their parts.
Array record_complex(const Op& op, const Node* const* operands, int count, DType common) {
  if (!op.complex_form) throw_not_defined(op, common);
  Array arrays[Node::max_operands];
  for (int i = 0; i < count; ++i) {
    Node* operand = const_cast<Node*>(operands[i]);
    add_count(operand, one_user);
    arrays[i] = Array::adopt(operand);
  }
  const auto stands = [](const Node* operand) { return !is_scalar(*operand); };
  const DeviceScope scope(**std::find_if(operands, operands + count, stands));  // numbers go where the arrays are
  return op.complex_form(std::span<const Array>(arrays, static_cast<size_t>(count)));
}

/// The type in which the body runs: operands are converted to it.
ScalarType compute_type(const Op& op, DType common) {
  const bool widens = op.type_rule == TypeRule::floating || op.type_rule == TypeRule::number;
  const ScalarType type = scalar_type(widens ? result_type(op, common) : common);
  if (!op.body.loops[static_cast<int>(type)]) throw_not_defined(op, common);
  return type;
}

__attribute__((cold, noreturn)) void throw_no_broadcast(std::string_view op, const Shape& a, const Shape& b) {
  std::string text = std::string(op) + ": sizes " + to_string(a) + " and " + to_string(b) + " do not broadcast; ";
  if (op == "mul" && a.rank() == 2) {
    text = "operator*: sizes " + to_string(a) + " and " + to_string(b) +
           " do not broadcast; for the matrix product write matmul(W, x)";
  } else {
    text += "dims are aligned from the first, each pair must be equal or 1";
  }
  throw Error(ErrorKind::shape, text);
}

/// Grows `sizes` by the operand's dims; false when they do not broadcast.
bool broadcast_into(int64_t* sizes, int& rank, const Node* operand) {
  for (int d = 0; d < operand->rank; ++d) {
    const int64_t size = operand->sizes[d];
    if (d >= rank) {
      sizes[d] = size;
      rank = d + 1;
    } else if (sizes[d] != size) {
      if (sizes[d] != 1 && size != 1) return false;
      if (sizes[d] == 1) sizes[d] = size;
    }
  }
  return true;
}

/// The node refers to its operand number i.
void refer(Node* node, int i, const Node* operand) {
  node->in[i] = const_cast<Node*>(operand);
  add_reference(node, node->in[i]);
}

/// Elementwise ops keep C++ numbers in themselves: such a number costs no node in the graph.
void refer_or_keep(Node* node, const Node* const* operands, int count) {
  int numbers = 0;
  for (int i = 0; i < count; ++i) {
    if (is_scalar(*operands[i])) {
      node->numbers[numbers++] = scalar_value(*operands[i]);
      node->scalars = static_cast<uint8_t>(node->scalars | 1u << i);
    } else {
      refer(node, i, operands[i]);
    }
  }
}

/// So many nodes are pending that they are evaluated here. Those of a loop are from then on whenever some of its turns
/// are whole: their plans are the same, and small.
[[gnu::cold, gnu::noinline]] void evaluate_full(Context& context) {
  constexpr int64_t some = 2048;
  const int64_t turn = context.period();
  hooks.evaluate(context, nullptr, Moment::read);
  if (turn > 0) context.set_bound(std::max(some / turn, int64_t{1}) * turn);
}

/// This thread's context with room for a node. What may call other functions comes first: what follows keeps its values
/// in registers then.
[[gnu::always_inline]] inline Context& context_with_room() {
  Context& context = Context::current();
  if (context.is_full() && !context.in_gradient()) evaluate_full(context);
  context.make_room();
  return context;
}

/// A node on the device of arrays that are made from numbers alone; sizes and operands are set by the caller.
[[gnu::always_inline]] inline Node* make_node(Context& context, const Op& op, int count, DType type,
                                              ScalarType compute) {
  Node* node = context.start(op, NodeState::pending, type, compute, count);
  node->device = context.device;
  node->recorded_in = context.recorded_in;
  return node;
}

/// The node as an array, once all of it is set; evaluated where every op is. (The short path is not taken then.)
Array finished(Node* node) {
  Array made = Array::adopt(node);
  const bool has_value = node->op->kind == Kind::transfer;  // or will, from who records it
  if (node->recorder->watched && node->op->results == 1 && !has_value) watch({&made, 1});
  return made;
}

/// The common type of operands, and whether all are weak: strong ones first, weak ones follow them.
DType common_of_all(const Op& op, const Node* const* operands, int count, bool& weak) {
  bool first = true;
  DType common = DType::Float32;
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < count; ++i) {
      const Node* x = operands[i];
      if (x->weak != (pass == 1)) continue;
      if (first) common = x->dtype;
      else if (pass == 0) common = common_of(op, common, x->dtype);
      else if (weak) common = join_numbers(op, common, x->dtype);
      else common = join_weak(common, x->dtype);
      first = false;
      weak = weak && x->weak;
    }
  }
  return common;
}

/// The same; for arrays of one float type, beside what is weak, without any rule.
DType common_type(const Op& op, const Node* const* operands, int count, bool& weak) {
  const Node* strong = nullptr;
  bool alike = true;
  for (int i = 0; i < count; ++i) {
    if (operands[i]->weak) continue;
    if (!strong) strong = operands[i];
    alike = alike && operands[i]->dtype == strong->dtype;
  }
  weak = !strong;
  return strong && alike && is_float(strong->dtype) ? strong->dtype : common_of_all(op, operands, count, weak);
}

void check_mask(const Op& op, const Node* mask) {
  if (mask->dtype == DType::Bool) return;
  throw Error(ErrorKind::dtype, std::string(op.name) + ": the condition must be Bool; got " + to_string(mask->dtype) +
                                    "; write e.g. where(x > 0, a, b)");
}

// What follows is inlined with a known count, so that it has no loops: every training step pays for it per op.

/// What the operands of an elementwise op are where no rule is needed.
struct Pattern {
  const Node* like = nullptr;  // arrays of one float type, one shape and one device: one of them
  bool numbers = false;        // there are C++ numbers beside them, which follow
};

/// No `like` where a rule is needed.
[[gnu::always_inline]] inline Pattern pattern_of(const Node* const* operands, int count) {
  Pattern pattern;
#pragma GCC unroll 4
  for (int i = 0; i < count; ++i) {
    const Node* x = operands[i];
    if (x->weak) {
      if (!is_scalar(*x)) return {};
      pattern.numbers = true;
    } else if (!pattern.like) {
      pattern.like = x;
    } else if (x->likeness() != pattern.like->likeness() || !x->is_as_large_as(*pattern.like)) {
      return {};
    }
  }
  if (pattern.like && !is_float(pattern.like->dtype)) pattern.like = nullptr;
  return pattern;
}

/// The body runs in the pattern's own type, which no type rule widens: it is a float.
[[gnu::always_inline]] inline Array record_like(Context& context, const Pattern& pattern, const Op& op,
                                                const Node* const* operands, int count) {
  const DType type = pattern.like->dtype;
  const ScalarType compute = scalar_type(type);
  if (!op.body.loops[static_cast<int>(compute)]) throw_not_defined(op, type);
  Node* node = make_node(context, op, count, result_type(op, type), compute);
  node->set_sizes_of(*pattern.like);
  node->device = pattern.like->device;
  if (pattern.numbers) {
    refer_or_keep(node, operands, count);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) refer(node, i, operands[i]);
  }
  return Array::adopt(node);
}

/// The type in which an op on C++ numbers alone is computed at once; none where an operand is no such number.
std::optional<ScalarType> type_of_numbers(const Op& op, const Node* const* operands, int count, DType common) {
  const auto is_number = [](const Node* x) { return x->weak && is_scalar(*x); };
  if (is_complex(common) || !std::all_of(operands, operands + count, is_number)) return std::nullopt;
  const bool real = is_float(common) || op.type_rule == TypeRule::floating;
  const bool huge = std::any_of(operands, operands + count, [](const Node* x) { return x->dtype == DType::UInt64; });
  const ScalarType type = real ? ScalarType::float64 : huge ? ScalarType::uint64 : ScalarType::int64;
  const ScalarType result = op.body.result[static_cast<int>(type)];
  const bool stays = result == type || result == ScalarType::boolean;
  return op.body.loops[static_cast<int>(type)] && stays ? std::optional(type) : std::nullopt;
}

/// Numbers are as exact as in C++ until they meet an array: Float64 would see the rounding of anything less, and Int8
/// what a narrower sum has lost.
Array number_of(const Op& op, const Node* const* operands, int count, ScalarType type) {
  ScalarValue values[Node::max_positions];
  const void* in[Node::max_positions] = {};
  for (int i = 0; i < count; ++i) {
    values[i] = scalar_value(*operands[i]);
    if (type == ScalarType::uint64 && beyond(DType::UInt64, *operands[i]) != 0) {
      throw_not_held(op.name, DType::UInt64, *operands[i]);
    }
    in[i] = type == ScalarType::float64 ? static_cast<const void*>(&values[i].real) : &values[i].integer;
  }
  const bool boolean = op.body.result[static_cast<int>(type)] == ScalarType::boolean;
  int64_t bits = 0;
  op.body.loops[static_cast<int>(type)](&bits, in, 1);
  if (boolean) return *reinterpret_cast<const uint8_t*>(&bits) != 0;
  if (type == ScalarType::float64) return std::bit_cast<double>(bits);
  return type == ScalarType::uint64 ? Array(static_cast<uint64_t>(bits)) : Array(bits);
}

/// A number that the arrays' integer type does not hold: what the op makes of that, or nothing where all are held.
Array record_beyond(const Op& op, const Node* const* operands, int count, DType common) {
  for (int i = 0; i < count; ++i) {
    const Node* x = operands[i];
    const int side = x->weak && is_scalar(*x) ? beyond(common, *x) : 0;
    if (side == 0) continue;
    if (!op.beyond_form) throw_not_held(op.name, common, *x);
    Node* other = const_cast<Node*>(operands[1 - i]);
    add_count(other, one_user);
    return op.beyond_form(Array::adopt(other), i == 0, side > 0);
  }
  return {};
}

/// Where rules are needed. Apart from the short path, whose calls would save the registers of this one.
[[gnu::noinline]] Array record_by_rules(const Op& op, const Node* const* operands, int count, const DType* stated) {
  bool weak = true;
  const int start = op.mask_first ? 1 : 0;
  const DType common = common_type(op, operands + start, count - start, weak);
  if (op.mask_first) check_mask(op, operands[0]);
  else if (const auto type = weak && !stated ? type_of_numbers(op, operands, count, common) : std::nullopt)
    return number_of(op, operands, count, *type);
  if (is_complex(common) && !stated) return record_complex(op, operands, count, common);
  if (is_integer(common) && !stated && op.type_rule != TypeRule::floating) {
    if (Array made = record_beyond(op, operands + start, count - start, common); !made.is_nothing()) return made;
  }
  int64_t sizes[Shape::max_rank];
  int rank = 0;
  const Node* placed = nullptr;  // an operand that stands on a device
  for (int i = 0; i < count; ++i) {
    if (operands[i]->op != &scalar_op) {
      if (placed && placed->device != operands[i]->device) {
        const Gathered gathered(op, operands, count);
        return record_by_rules(op, gathered.nodes(), count, stated);
      }
      placed = operands[i];
    }
    if (!broadcast_into(sizes, rank, operands[i])) {
      throw_no_broadcast(op.name, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank))),
                         operands[i]->shape());
    }
  }
  if (!can_be_sizes(sizes, rank)) refuse_sizes(op.name, sizes, rank);
  Node* node =
      make_node(context_with_room(), op, count, stated ? *stated : result_type(op, common), compute_type(op, common));
  node->set_sizes(sizes, rank);
  node->weak = weak && !op.mask_first && !stated;
  if (placed) node->device = placed->device;
  refer_or_keep(node, operands, count);
  return finished(node);
}

/// All elementwise ops come here, but for those whose type is stated.
[[gnu::always_inline]] inline Array record_elementwise(const Op& op, const Node* const* operands, int count) {
  Context& context = context_with_room();
  const Pattern pattern = op.mask_first || context.watched ? Pattern() : pattern_of(operands, count);
  return pattern.like ? record_like(context, pattern, op, operands, count)
                      : record_by_rules(op, operands, count, nullptr);
}

}  // namespace

void refuse_type(std::string_view op, DType type) {
  const char* cure = is_complex(type) ? "take abs(z), real(z) or imag(z), or both parts with view_as_real(z)"
                                      : "convert it with cast(x, type)";
  throw Error(ErrorKind::dtype, std::string(op) + ": not defined for elements of type " + to_string(type) +
                                    "; got such an operand; " + cure);
}

void refuse_nothing(const Op& op) {
  throw Error(ErrorKind::argument,
              std::string(op.name) + ": an operand is nothing (an empty Array); give it a value first");
}

Array record(const Op& op, const Array& a) {
  require(op, a);
  const Node* operands[] = {a.node()};
  return record_elementwise(op, operands, 1);
}

Array record(const Op& op, const Array& a, const Array& b) {
  require(op, a);
  require(op, b);
  const Node* operands[] = {a.node(), b.node()};
  return record_elementwise(op, operands, 2);
}

Array record(const Op& op, const Array& a, const Array& b, const Array& c) {
  require(op, a);
  require(op, b);
  require(op, c);
  const Node* operands[] = {a.node(), b.node(), c.node()};
  return record_elementwise(op, operands, 3);
}

Array record_elementwise(const Op& op, Operands operands) {
  const Node* nodes[Node::max_positions];
  int count = 0;
  for (const Array* operand : operands) {
    require(op, *operand);
    nodes[count++] = operand->node();
  }
  return record_elementwise(op, nodes, count);
}

Array record_as(const Op& op, const Array& a, DType type) {
  require(op, a);
  const Node* operands[] = {a.node()};
  return record_by_rules(op, operands, 1, &type);
}

namespace {

/// A node with so many operands, all null. What has no room for them keeps them in a list.
Node* make_node_of_any(const Op& op, size_t operands, DType type) {
  const bool few = operands <= Node::max_operands;
  Context& context = context_with_room();
  OperandList* list = few ? nullptr : OperandList::make(operands);
  Node* node = make_node(context, op, few ? static_cast<int>(operands) : Node::many, type, scalar_type(type));
  if (!few) node->list = list;
  return node;
}

/// Refers to operand i of a node of any number of them.
void refer_of_any(Node* node, size_t i, const Node* operand) {
  Node** in = node->operands == Node::many ? node->list->nodes() : node->in;
  in[i] = const_cast<Node*>(operand);
  add_reference(node, in[i]);
}

Node* record_node(const Op& op, Operands operands, DType type, const Shape& shape, const Attributes& attributes);

/// Operands that do not stand together, brought together.
[[gnu::cold]] Node* record_together(const Op& op, Operands operands, DType type, const Shape& shape,
                                    const Attributes& attributes) {
  std::vector<const Node*> nodes;
  for (const Array* operand : operands) nodes.push_back(operand->node());
  const Gathered gathered(op, nodes.data(), static_cast<int>(nodes.size()));
  std::vector<const Array*> together;
  for (size_t i = 0; i < nodes.size(); ++i) together.push_back(&gathered[static_cast<int>(i)]);
  return record_node(op, together, type, shape, attributes);
}

/// A node as stated, with one user handle that the caller takes.
Node* record_node(const Op& op, Operands operands, DType type, const Shape& shape, const Attributes& attributes) {
  const Node* placed = nullptr;  // an operand that is no number
  bool together = true;
  for (const Array* operand : operands) {
    require(op, *operand);
    const Node* x = operand->node();
    if (is_complex(x->dtype) && info(op.kind).computes) throw_not_defined(op, x->dtype);
    if (is_scalar(*x)) continue;
    together = together && (!placed || placed->device == x->device);
    placed = x;
  }
  if (!together) return record_together(op, operands, type, shape, attributes);
  const uint32_t site = info(op.kind).checks ? recording_site() : 0;
  Node* node = make_node_of_any(op, operands.size(), type);
  if (placed) node->device = placed->device;
  node->set_sizes(shape.begin(), shape.rank());
  node->attributes = attributes;
  if (site != 0) set_site(node->attributes, site);
  for (size_t i = 0; i < operands.size(); ++i) refer_of_any(node, i, operands[i]->node());
  return node;
}

/// Not yet watched. Nothing is evaluated on the way: the op itself has a handle only until its results are there.
Array make_part(Node* of, int k, const ResultForm& form) {
  Context& context = Context::current();
  context.make_room();
  Node* node = make_node(context, part_op, 1, form.type, scalar_type(form.type));
  node->device = of->device;
  node->recorded_in = of->recorded_in;
  node->set_sizes(form.shape.begin(), form.shape.rank());
  node->attributes = Attributes::of(PartAttributes{k});
  refer(node, 0, of);
  return Array::adopt(node);
}

}  // namespace

Array record(const Op& op, Operands operands, DType type, const Shape& shape, const Attributes& attributes) {
  return finished(record_node(op, operands, type, shape, attributes));
}

void record(const Op& op, Operands operands, std::span<const ResultForm> forms, const Attributes& attributes,
            std::span<Array> results) {
  const Array call = Array::adopt(record_node(op, operands, forms[0].type, forms[0].shape, attributes));
  for (size_t k = 0; k < forms.size(); ++k) results[k] = make_part(call.node(), static_cast<int>(k), forms[k]);
  if (call.node()->recorder->watched) watch(results);
}

Array record_part(Node* node, int k, const ResultForm& form) {
  Array made = make_part(node, k, form);
  if (node->recorder->watched) watch({&made, 1});
  return made;
}

Array record_again(const Node& original, std::span<Node* const> in, uint8_t device) {
  return record_again(original, in, device, original.shape(), original.attributes);
}

Array record_again(const Node& original, std::span<Node* const> in, uint8_t device, const Shape& shape,
                   const Attributes& attributes) {
  Node* node = make_node_of_any(*original.op, in.size(), original.dtype);
  node->compute = original.compute;
  if (original.operands != Node::many) node->operands = original.operands;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i]) refer_of_any(node, i, in[i]);
  }
  node->recorded_in = original.recorded_in.with(0u);
  node->weak = original.weak;
  node->device = device;
  node->scalars = original.scalars;
  node->attributes = attributes;
  node->set_sizes(shape.begin(), shape.rank());
  return finished(node);
}

DType common_type(const Op& op, Operands operands) {
  bool found = false;
  DType common = DType::Float32;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Array* x : operands) {
      if (x->node()->weak != (pass == 1)) continue;
      if (!found) common = x->node()->dtype;
      else common = pass == 0 ? common_of(op, common, x->node()->dtype) : join_weak(common, x->node()->dtype);
      found = true;
    }
  }
  for (const Array* x : operands) require_held(op.name, common, *x);
  return common;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  int64_t sizes[Shape::max_rank];
  const int rank = std::max(a.rank(), b.rank());
  for (int d = 0; d < rank; ++d) {
    const int64_t x = d < a.rank() ? a[d] : 1, y = d < b.rank() ? b[d] : 1;
    if (x != y && x != 1 && y != 1) throw_no_broadcast(op, a, b);
    sizes[d] = x == 1 ? y : x;
  }
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank)));
}

int checked_dim(std::string_view op, int dim, const Shape& shape) {
  const int at = dim < 0 ? dim + shape.rank() : dim;
  if (at >= 0 && at < shape.rank()) return at;
  throw Error(ErrorKind::shape, std::string(op) + ": dim " + std::to_string(dim) + " does not exist; the shape is " +
                                    to_string(shape) + "; dims count from 0, negative ones from the end");
}

}  // namespace rosin
