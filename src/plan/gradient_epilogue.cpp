// Fuser: what calls of training do beside their product: the auxiliary of an activation, which its gradient reads
// behind the next product, and sums of gradients. Read first: epilogue.cpp, call.hpp.
#include "plan/describe.hpp"
#include "plan/fuse.hpp"

namespace rosin::plan {
namespace {

bool is_sum_over_dims(const Op& op) {
  static const Op* const sum = find_op("sum");
  return &op == sum;
}

/// Which operand of the call is summed up over all but its rows or channels, or -1.
int summed_operand(const Value& call) {
  switch (call.op->contraction) {
    case Contraction::matmul:
      return call.rank == 2 && call.attributes.as<MatmulAttributes>().transposed[0] == 0 ? 0 : -1;
    case Contraction::convolution_weights: return 1;
    default: return -1;
  }
}

}  // namespace

/// What the activation keeps for its gradient, or the gradient reads. False where the node cannot do without and there
/// is none; that of relu comes later (add_bits).
bool Fuser::add_auxiliary(Unit& wanted, int32_t unit, int32_t node, int product, bool alone) {
  const Activation activation = wanted.epilogue.activation;
  if (!is_gradient(activation)) {
    wanted.epilogue.auxiliary = !alone;
    if (!alone) wanted.auxiliary = v(node).in[product];
    return true;
  }
  wanted.epilogue.auxiliary = true;
  const int32_t other = v(node).in[1] < 0 ? -1 : plain(v(node).in[1]);
  if (other < 0 || v(other).dtype != v(node).dtype || v(other).wide != v(node).wide || v(other).rank != v(node).rank) {
    return false;
  }
  if (has_bits(activation)) return forward_with_bits(unit, other) >= 0;
  if (v(other).channels_first != v(units[unit].members.front()).channels_first || !fits_epilogue(unit, other)) {
    return false;
  }
  wanted.auxiliary = other;
  return true;
}

/// The product that makes `activated` by relu, where it stores bits or would, or -1.
int32_t Fuser::forward_with_bits(int32_t unit, int32_t activated) const {
  const int32_t forward = unit_of_[static_cast<size_t>(activated)];
  if (forward < 0 || forward == unit || !units[forward].call || units[forward].members.back() != activated) return -1;
  if (units[forward].epilogue.activation != Activation::relu || units.depends(forward, unit)) return -1;
  if (v(units[forward].members.front()).op->contraction != Contraction::matmul) return -1;
  return units[forward].auxiliary >= 0 || offers_bits(forward) ? forward : -1;
}

bool Fuser::offers_bits(int32_t forward) const {
  Unit wanted = units[forward];
  wanted.epilogue.auxiliary = true;
  return target_.takes(described(wanted.members.front(), wanted));
}

/// The bits that relu_slope behind a product reads; the product that relu stands behind stores them from now on.
bool Fuser::add_bits(Unit& wanted, int32_t unit, int32_t node) {
  const int32_t activated = plain(v(node).in[1]), forward = forward_with_bits(unit, activated);
  if (forward < 0) return false;
  if (units[forward].auxiliary < 0) {
    Value bits = look_of(activated, Look::bits);
    bits.dtype = DType::UInt8;
    bits.wide = static_cast<uint8_t>(bits.wide | 1);
    const int32_t made = append(bits, Home::own, activated);
    unit_of_[static_cast<size_t>(made)] = forward;
    level_[static_cast<size_t>(made)] = Level::late;
    units[forward].epilogue.auxiliary = true;
    units[forward].auxiliary = made;
  }
  wanted.auxiliary = units[forward].auxiliary;
  return true;
}

void Fuser::find_calls_that_sum() {
  summed_by_.assign(s_.graph.values.size(), -1);
  for (int32_t node = s_.graph.nodes; node-- > 0;) {
    const Value& call = v(node);
    const int i = call.op->kind == Kind::contraction ? summed_operand(call) : -1;
    if (i >= 0 && call.in[i] >= 0) summed_by_[static_cast<size_t>(plain(call.in[i]))] = node;
  }
}

/// A bias's gradient: by the product that ends in what is summed, or by that of the weights' gradient, which reads it.
bool Fuser::join_sums(int32_t node) {
  if (!is_sum_over_dims(*v(node).op) || v(node).in[0] < 0) return false;
  const int32_t operand = plain(v(node).in[0]);
  if (v(operand).dtype != v(node).dtype) return false;
  return take_own_sums(node, operand) || (!is_made_on_the_way(operand) && take_sums_of_operand(node, operand));
}

/// Whether a kernel without rows makes the operand, element by element, and may add it up: nobody reads it for that.
bool Fuser::is_made_on_the_way(int32_t operand) const {
  const auto at = static_cast<size_t>(operand);
  if (!target_.sums_stores() || unit_of_[at] < 0) return false;
  const Unit& unit = units[unit_of_[at]];
  return !unit.call && unit.row_dims == 0 && level_[at] == Level::full;
}

/// Whether the node sums over all dims but the rows of a product, or the channels of images.
bool Fuser::sums_rows(int32_t node, int32_t operand, const Value& made) const {
  const Value& x = v(operand);
  const bool product = made.op->contraction == Contraction::matmul;
  if (product && x.rank != 2) return false;
  const auto kept = static_cast<uint8_t>(1u << (product ? 0 : x.rank - 2));
  const auto dims = static_cast<uint8_t>(v(node).attributes.as<ReductionAttributes>().dims);
  return (x.wide & dims) == (x.wide & ~kept);
}

bool Fuser::take_own_sums(int32_t node, int32_t operand) {
  const int32_t unit = unit_of_[static_cast<size_t>(operand)];
  if (unit < 0 || !units[unit].call || units[unit].members.back() != operand) return false;
  Unit wanted = units[unit];
  const Value& made = v(wanted.members.front());
  if (!is_gradient(wanted.epilogue.activation) || wanted.epilogue.bias_gradient) return false;
  if (made.op->contraction != Contraction::matmul || !sums_rows(node, operand, made)) return false;
  wanted.epilogue.bias_gradient = true;
  if (!target_.takes(described(wanted.members.front(), wanted))) return false;
  wanted.bias_gradient = node;
  wanted.members.insert(wanted.members.end() - 1, node);
  units[unit] = wanted;
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::late;
  s_.homes[static_cast<size_t>(node)] = Home::own;
  return true;
}

/// The call is placed now if it was recorded behind the sums.
bool Fuser::take_sums_of_operand(int32_t node, int32_t operand) {
  const int32_t call = summed_by_[static_cast<size_t>(operand)];
  if (call < 0 || !sums_rows(node, operand, v(call))) return false;
  Unit wanted;
  wanted.epilogue.bias_gradient = true;
  const int32_t placed = unit_of_[static_cast<size_t>(call)];
  if (placed >= 0 ? !units[placed].taken || !units[placed].epilogue.none() : !is_ready(call, node)) return false;
  if (!target_.takes(described(call, wanted))) return false;
  if (placed < 0) add_call(call);
  const int32_t unit = unit_of_[static_cast<size_t>(call)];
  units[unit].epilogue.bias_gradient = true;
  units[unit].bias_gradient = node;
  v(node).in[0] = v(call).in[summed_operand(v(call))];  // as it stands in memory
  unit_of_[static_cast<size_t>(node)] = unit;
  level_[static_cast<size_t>(node)] = Level::late;
  s_.homes[static_cast<size_t>(node)] = Home::own;
  return true;
}

/// Whether all that the call reads has been placed by the time of node `before`.
bool Fuser::is_ready(int32_t call, int32_t before) const {
  for (int i = 0; i < v(call).operands; ++i) {
    const int32_t operand = v(call).in[i];
    if (operand < 0 || (operand >= before && operand < s_.graph.nodes)) return false;
  }
  return true;
}

}  // namespace rosin::plan
