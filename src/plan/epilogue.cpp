// Fuser: which elementwise ops become the epilogue of the call whose result they read. They may where nobody else wants
// what stands between, where the executor takes the call so, and where it needs nothing that waits for the call.
// Read first: fuse.hpp, call.hpp. Read next: gradient_epilogue.cpp.
#include "plan/describe.hpp"
#include "plan/fuse.hpp"
#include "plan/layout.hpp"

namespace rosin::plan {
namespace {

/// The wide dims of a bias: rows of a product, channels of images.
uint8_t bias_dims(const Value& made) {
  const int dim = made.op->contraction == Contraction::matmul ? 0 : made.rank - 2;
  return static_cast<uint8_t>(made.wide & (1u << dim));
}

bool is_difference(const Op& op) {
  static const Op* const difference = find_op("sub");
  return &op == difference;
}

bool is_sum(const Op& op) {
  static const Op* const sum = find_op("add");
  return &op == sum;
}

bool is_product(const Op& op) {
  static const Op* const product = find_op("mul");
  return &op == product;
}

}  // namespace

bool Fuser::join_call(int32_t node) {
  const Op& op = *v(node).op;
  if (activation_of(op) == Activation::none && !is_sum(op) && !is_product(op) && !is_difference(op)) return false;
  const Activation activation = activation_of(op);
  const bool may_keep = activation != Activation::none && !has_bits(activation) && !is_gradient(activation);
  // The later one first: then no call waits for what comes long after it.
  const int operands = v(node).operands, first = operands > 1 && v(node).in[1] > v(node).in[0] ? 1 : 0;
  for (int k = 0; k < operands; ++k) {
    const int i = (first + k) % operands;
    const int32_t made = v(node).in[i];
    if (made < 0 || made >= s_.graph.nodes || ((is_gradient(activation) || is_difference(op)) && i != 0)) {
      continue;
    }
    const bool alone = !v(made).held && readers_[static_cast<size_t>(made)] == 1;
    if (!alone && !may_keep) continue;
    const int32_t unit = unit_of_[static_cast<size_t>(made)];
    if (unit < 0 || !units[unit].call || units[unit].members.back() != made) continue;
    const Value &from = v(made), &to = v(node);
    if (from.mode != to.mode || from.dtype != to.dtype || from.wide != to.wide || from.rank != to.rank) continue;
    if (take_into_call(unit, node, i, alone)) return true;
  }
  return false;
}

/// A call of the graph with an epilogue.
CallDescription Fuser::described(int32_t call, const Unit& wanted) const {
  CallDescription made = *call_of(call);
  add_epilogue(made, wanted.epilogue, arrays_of(wanted.epilogue, made.result()));
  return made;
}

/// `product`: which operand of the node is the call's result. `alone`: nobody else reads that.
bool Fuser::take_into_call(int32_t unit, int32_t node, int product, bool alone) {
  const Unit& before = units[unit];
  if (!before.taken || before.epilogue.activation != Activation::none || before.epilogue.bias_gradient) return false;
  Unit wanted;
  wanted.epilogue = before.epilogue;
  wanted.bias = before.bias;
  wanted.residual = before.residual;
  wanted.center = before.center;
  wanted.factor = before.factor;
  wanted.shift = before.shift;
  wanted.scale = before.scale;
  const Op& op = *v(node).op;
  wanted.epilogue.activation = activation_of(op);
  if (!add_auxiliary(wanted, unit, node, product, alone)) return false;
  const int32_t other = v(node).operands > 1 ? v(node).in[1 - product] : -1;
  const auto adds = [&](CallRole role) { return add_of_channels(wanted, unit, node, other, role); };
  if (is_sum(op) && !add_array(wanted, unit, node, other) && !adds(CallRole::shift)) return false;
  if (is_difference(op) && !adds(CallRole::center)) return false;
  if (is_product(op) && !add_scale(wanted, node, 1 - product) && !adds(CallRole::factor)) return false;
  if (!target_.takes(described(before.members.front(), wanted))) return false;
  if (wanted.epilogue.reads_auxiliary() && wanted.auxiliary < 0 && !add_bits(wanted, unit, node)) return false;
  add_to_call(unit, node, wanted);
  return true;
}

/// `other`: what is added.
bool Fuser::add_array(Unit& wanted, int32_t unit, int32_t node, int32_t other) const {
  if (other < 0) return false;  // a number
  const Value& made = v(units[unit].members.front());
  other = without_broadcast(other);
  if (v(other).dtype != v(node).dtype || wanted.epilogue.residual || !fits_epilogue(unit, other)) return false;
  const bool as_bias = !wanted.epilogue.bias && !wanted.epilogue.normalises() && v(other).wide == bias_dims(made);
  const bool as_large =
      v(other).wide == v(node).wide && v(other).rank == v(node).rank && v(other).channels_first == made.channels_first;
  if (as_bias && !v(other).channels_first) wanted.epilogue.bias = true, wanted.bias = other;
  else if (as_large) wanted.epilogue.residual = true, wanted.residual = other;
  else return false;
  return true;
}

/// Operand i is what the product is multiplied by, before anything else: a number.
bool Fuser::add_scale(Unit& wanted, int32_t node, int i) const {
  const int32_t other = v(node).in[i];
  if (!wanted.epilogue.none() || (other >= 0 && !v(other).is_scalar())) return false;
  wanted.epilogue.scaled = true;
  wanted.scale = static_cast<int64_t>(other < 0 ? scalar_index(node, i) : scalar_index(other, -1));
  return true;
}

/// Joins an operand of the node as one of the arrays that are like a bias, unless a later one is there.
bool Fuser::add_of_channels(Unit& wanted, int32_t unit, int32_t node, int32_t other, CallRole role) const {
  Epilogue& epilogue = wanted.epilogue;
  const bool later = epilogue.residual || epilogue.shift || (role != CallRole::shift && epilogue.factor) ||
                     (role == CallRole::center && epilogue.center);
  if (later || !is_of_channels(unit, node, other)) return false;
  other = without_broadcast(other);
  if (role == CallRole::center) epilogue.center = true, wanted.center = other;
  else if (role == CallRole::factor) epilogue.factor = true, wanted.factor = other;
  else epilogue.shift = true, wanted.shift = other;
  return true;
}

/// Whether an operand of the node is like a bias, and there before the call: what is so small may be stored for it.
bool Fuser::is_of_channels(int32_t unit, int32_t node, int32_t other) const {
  if (other < 0) return false;  // a number
  other = without_broadcast(other);
  return v(other).dtype == v(node).dtype && !v(other).channels_first &&
         v(other).wide == bias_dims(v(units[unit].members.front())) && is_there_before(unit, other);
}

/// Whether the value stands in memory without gaps, and needs nothing of the call.
bool Fuser::is_there_before(int32_t unit, int32_t other) const {
  const int32_t maker = unit_of(other);
  return stands_in_memory(other) && (maker < 0 || (maker != unit && !units.depends(maker, unit)));
}

/// Whether the value stands in memory without gaps, or would without this call: nothing is stored on its account.
bool Fuser::fits_epilogue(int32_t unit, int32_t other) const {
  if (!is_there_before(unit, other)) return false;
  const int32_t maker = unit_of(other);
  return maker < 0 || units[maker].call || v(other).held || readers_[static_cast<size_t>(other)] > 1;
}

bool Fuser::stands_in_memory(int32_t value) const {
  int32_t root = value;
  for (; s_.homes[static_cast<size_t>(root)] == Home::alias; root = s_.base[static_cast<size_t>(root)]) {}
  const Home home = s_.homes[static_cast<size_t>(root)];
  if (home != Home::leaf && home != Home::own) return false;
  return !v(root).channels_first || root == value;
}

void Fuser::add_to_call(int32_t unit, int32_t node, const Unit& wanted) {
  const int32_t made = units[unit].members.front(), before = units[unit].members.back();
  Unit& call = units[unit];
  call.epilogue = wanted.epilogue;
  call.bias = wanted.bias;
  call.residual = wanted.residual;
  call.center = wanted.center;
  call.factor = wanted.factor;
  call.shift = wanted.shift;
  call.auxiliary = wanted.auxiliary;
  call.scale = wanted.scale;
  call.domain = node;
  call.wide = v(node).wide;
  call.members.push_back(node);
  for (const int32_t value :
       {wanted.bias, wanted.residual, wanted.auxiliary, wanted.center, wanted.factor, wanted.shift}) {
    if (value >= 0 && unit_of(value) >= 0) units.add_dependency(unit, unit_of(value));
  }
  if (before != made && before != wanted.auxiliary) s_.homes[static_cast<size_t>(before)] = Home::none;
  if (made != wanted.auxiliary) {
    s_.homes[static_cast<size_t>(made)] = Home::result;
    s_.base[static_cast<size_t>(made)] = node;
  }
  s_.homes[static_cast<size_t>(node)] = Home::own;
  v(node).channels_first = v(made).channels_first;
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::full;
}

}  // namespace rosin::plan
