// Recording: type and shape rules, and the making of nodes. The path of an elementwise op on matching arrays is kept
// short: it is what every training step pays per op.
#include "graph/record.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "base/hash.hpp"
#include "graph/context.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"

namespace rosin {
namespace {

using Operands = std::span<const Array* const>;

[[noreturn]] __attribute__((cold)) void throw_float_mix(const Op& op, DType a, DType b) {
  throw Error(ErrorKind::dtype, std::string(op.name) + ": two different float types in one op; got " + to_string(a) +
                                    " and " + to_string(b) + "; convert one with cast(x, " + to_string(a) + ")");
}

/// Order in which integer types absorb each other (NumPy's rule for the types that rosin has).
DType common_integer(DType a, DType b) {
  const auto is_signed = [](DType t) {
    return t == DType::Int8 || t == DType::Int16 || t == DType::Int32 || t == DType::Int64;
  };
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_signed(a) == is_signed(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (size_of(s) > size_of(u)) return s;
  if (size_of(u) == 1) return DType::Int16;
  return size_of(u) == 2 ? DType::Int32 : DType::Int64;
}

DType common_of(const Op& op, DType a, DType b) {
  if (a == b) return a;
  const bool complex_a = is_complex(a), complex_b = is_complex(b);
  if (complex_a || complex_b) return complex_a ? a : b;
  const bool float_a = is_float(a), float_b = is_float(b);
  if (float_a && float_b) throw_float_mix(op, a, b);
  if (float_a) return a;
  if (float_b) return b;
  return common_integer(a, b);
}

/// A weak number meets a type: it follows, unless a float meets integers (then Float32).
DType join_weak(DType strong, DType weak) {
  if (is_float(weak) && !is_float(strong) && !is_complex(strong)) return weak;
  if (strong == DType::Bool) return weak;
  return strong;
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
  throw Error(ErrorKind::dtype, std::string(op.name) + ": not defined for elements of type " + to_string(type) +
                                    "; got such an operand; convert it with cast(x, type)");
}

/// The type in which the body runs: operands are converted to it. Complex numbers are stored, moved and cast only.
ScalarType compute_type(const Op& op, DType common, bool stated) {
  const bool widens = op.type_rule == TypeRule::floating || op.type_rule == TypeRule::number;
  const ScalarType type = scalar_type(widens ? result_type(op, common) : common);
  if (!op.body.loops[static_cast<int>(type)] || (is_complex(common) && !stated)) throw_not_defined(op, common);
  return type;
}

/// Kinds that compute with elements, beside the elementwise one.
bool is_arithmetic(const Op& op) {
  return op.kind == Kind::reduction || op.kind == Kind::scan || op.kind == Kind::contraction ||
         op.kind == Kind::window || op.kind == Kind::sort;
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

void check_devices(const Op& op, const Node* a, const Node* b) {
  if (a->device == b->device || a->op == &scalar_op || b->op == &scalar_op) return;
  throw Error(ErrorKind::device, std::string(op.name) + ": operands are on two devices; move one with x | device");
}

uint64_t own_hash(const Node& node) {
  uint64_t ones = 0;
  for (int d = 0; d < node.rank; ++d) ones |= uint64_t{node.sizes[d] == 1} << d;
  uint64_t hash = mix(node.op->id, static_cast<uint64_t>(node.dtype) | uint64_t{node.rank} << 8 | ones << 16 |
                                       static_cast<uint64_t>(node.compute) << 24 | uint64_t{node.operands} << 32 |
                                       uint64_t{node.scalars} << 40);
  if (!node.op->sizes_in_attributes) {
    uint64_t words[8];
    std::memcpy(words, node.attributes.bytes, sizeof words);
    hash = hash_words(words, node.op->attribute_words, hash);
  }
  return hash;
}

/// Other kinds refer to all their operands.
void refer(Node* node, const Node* const* operands) {
  for (int i = 0; i < node->operands; ++i) {
    node->in[i] = const_cast<Node*>(operands[i]);
    add_count(node->in[i], one_reference);
  }
}

/// Elementwise ops keep C++ numbers in themselves: such a number costs no node in the graph.
void refer_or_keep(Node* node, const Node* const* operands) {
  for (int i = 0; i < node->operands; ++i) {
    if (operands[i]->op == &scalar_op) {
      node->number(i) = scalar_value(*operands[i]);
      node->scalars = static_cast<uint8_t>(node->scalars | 1u << i);
    } else {
      node->in[i] = const_cast<Node*>(operands[i]);
      add_count(node->in[i], one_reference);
    }
  }
}

Node* make_node(const Op& op, const Node* const* operands, int count, DType type, ScalarType compute) {
  Context& context = Context::current();
  if (context.pending_count() >= pending_limit && context.gradient_depth.load(std::memory_order_relaxed) == 0)
    hooks.evaluate(context, nullptr);
  Node* node = context.allocate();
  node->counts.store(one_user, std::memory_order_relaxed);
  node->op = &op;
  node->scalars = 0;
  for (Node*& in : node->in) in = nullptr;
  node->buffer = nullptr;
  node->recorder = &context;
  node->guards.store(0, std::memory_order_relaxed);
  node->sequence = context.next_sequence();
  node->state.store(NodeState::pending, std::memory_order_relaxed);
  node->dtype = type;
  node->compute = compute;
  node->operands = static_cast<uint8_t>(count);
  node->weak = node->tied = node->kept = false;
  node->device = count > 0 && operands[0] ? operands[0]->device : uint8_t{0};
  node->mark = 0;
  node->region = context.region;
  context.list(node);
  return node;
}

/// Two arrays that need no rule: one type, one shape.
bool alike(const Node* a, const Node* b) {
  return a->dtype == b->dtype && a->device == b->device && !a->weak && !b->weak && a->rank == b->rank &&
         std::equal(a->sizes, a->sizes + a->rank, b->sizes);
}

Array record_alike(const Op& op, const Node* const* operands, const DType* stated) {
  const DType common = operands[0]->dtype;
  Node* node = make_node(op, operands, 2, stated ? *stated : result_type(op, common), compute_type(op, common, stated));
  node->rank = operands[0]->rank;
  std::copy(operands[0]->sizes, operands[0]->sizes + node->rank, node->sizes);
  refer(node, operands);
  node->hash = own_hash(*node);
  return Array::adopt(node);
}

/// All elementwise ops come here; `type` is the stated type, or empty.
Array record_elementwise(const Op& op, const Node* const* operands, int count, const DType* stated) {
  if (count == 2 && alike(operands[0], operands[1])) return record_alike(op, operands, stated);
  bool weak = true;
  bool first = true;
  DType common = DType::Float32;
  const int start = op.mask_first ? 1 : 0;
  for (int pass = 0; pass < 2; ++pass) {  // strong operands first, weak ones follow them
    for (int i = start; i < count; ++i) {
      const Node* x = operands[i];
      if (x->weak != (pass == 1)) continue;
      if (first) common = x->dtype;
      else if (pass == 0 || weak) common = common_of(op, common, x->dtype);
      else common = join_weak(common, x->dtype);
      first = false;
      weak = weak && x->weak;
    }
  }
  if (op.mask_first && operands[0]->dtype != DType::Bool) {
    throw Error(ErrorKind::dtype, std::string(op.name) + ": the condition must be Bool; got " +
                                      to_string(operands[0]->dtype) + "; write e.g. where(x > 0, a, b)");
  }
  int64_t sizes[Shape::max_rank];
  int rank = 0;
  for (int i = 0; i < count; ++i) {
    if (i > 0) check_devices(op, operands[0], operands[i]);
    if (!broadcast_into(sizes, rank, operands[i])) {
      throw_no_broadcast(op.name, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank))),
                         operands[i]->shape());
    }
  }
  Node* node =
      make_node(op, operands, count, stated ? *stated : result_type(op, common), compute_type(op, common, stated));
  node->rank = static_cast<uint8_t>(rank);
  std::copy(sizes, sizes + rank, node->sizes);
  node->weak = weak && !op.mask_first && !stated;
  for (int i = 1; i < count; ++i) node->device = std::max(node->device, operands[i]->device);
  refer_or_keep(node, operands);
  node->hash = own_hash(*node);
  return Array::adopt(node);
}

}  // namespace

void require(const Op& op, const Array& x) {
  if (!x.is_nothing()) return;
  throw Error(ErrorKind::argument,
              std::string(op.name) + ": an operand is nothing (an empty Array); give it a value first");
}

Array record(const Op& op, const Array& a) {
  require(op, a);
  const Node* operands[] = {a.node()};
  return record_elementwise(op, operands, 1, nullptr);
}

Array record(const Op& op, const Array& a, const Array& b) {
  require(op, a);
  require(op, b);
  const Node* operands[] = {a.node(), b.node()};
  return record_elementwise(op, operands, 2, nullptr);
}

Array record(const Op& op, const Array& a, const Array& b, const Array& c) {
  require(op, a);
  require(op, b);
  require(op, c);
  const Node* operands[] = {a.node(), b.node(), c.node()};
  return record_elementwise(op, operands, 3, nullptr);
}

Array record_elementwise(const Op& op, Operands operands) {
  const Node* nodes[Node::max_positions];
  int count = 0;
  for (const Array* operand : operands) {
    require(op, *operand);
    nodes[count++] = operand->node();
  }
  return record_elementwise(op, nodes, count, nullptr);
}

Array record_as(const Op& op, const Array& a, DType type) {
  require(op, a);
  const Node* operands[] = {a.node()};
  return record_elementwise(op, operands, 1, &type);
}

Array record(const Op& op, Operands operands, DType type, const Shape& shape, const Attributes& attributes) {
  const Node* nodes[Node::max_operands] = {};
  int count = 0;
  for (const Array* operand : operands) {
    require(op, *operand);
    if (count > 0) check_devices(op, nodes[0], operand->node());
    if (is_complex(operand->node()->dtype) && is_arithmetic(op)) throw_not_defined(op, operand->node()->dtype);
    nodes[count++] = operand->node();
  }
  Node* node = make_node(op, nodes, count, type, scalar_type(type));
  node->rank = static_cast<uint8_t>(shape.rank());
  std::copy(shape.begin(), shape.end(), node->sizes);
  node->attributes = attributes;
  refer(node, nodes);
  node->hash = own_hash(*node);
  return Array::adopt(node);
}

Array record_again(const Node& original, const std::array<Node*, Node::max_operands>& in) {
  Node* node = make_node(*original.op, in.data(), original.operands, original.dtype, original.compute);
  for (size_t i = 0; i < in.size(); ++i) {
    node->in[i] = in[i];
    if (in[i]) add_count(in[i], one_reference);
  }
  node->region = 0;
  node->weak = original.weak;
  node->device = original.device;
  node->scalars = original.scalars;
  node->attributes = original.attributes;
  node->rank = original.rank;
  std::copy(original.sizes, original.sizes + original.rank, node->sizes);
  node->hash = original.hash;
  return Array::adopt(node);
}

DType common_type(const Op& op, Operands operands) {
  bool found = false;
  DType common = DType::Float32;
  for (int pass = 0; pass < 2; ++pass) {
    for (const Array* x : operands) {
      if (x->node()->weak != (pass == 1)) continue;
      if (!found) common = x->dtype();
      else common = pass == 0 ? common_of(op, common, x->dtype()) : join_weak(common, x->dtype());
      found = true;
    }
  }
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
