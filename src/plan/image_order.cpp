// Which convolutions and pools leave their images in logical order: convolutions of single channels, those of single
// points, and pools, where the target computes these as well as in CWHN, nothing that they read stands in CWHN, and
// nothing that reads them wants that. So no image is copied for one of them alone, and between other convolutions
// images stay in CWHN. Read first: fuse.cpp (add_call).
#include "graph/gather_form.hpp"
#include "plan/fuse.hpp"

namespace rosin::plan {

namespace {

/// Whether windows that are single points stand one beside the other, so that the convolution is a product.
bool is_dense(const CallWindow& window) {
  bool dense = window.groups == 1;
  for (int d = 0; d < window.spatial; ++d)
    dense = dense && window.stride[d] == 1 && window.pad_low[d] == 0 && window.pad_high[d] == 0;
  return dense;
}

}  // namespace

/// By sizes and target alone.
bool Fuser::may_be_logical(int32_t node, const CallDescription& call) const {
  if (v(node).small || !target_.takes_logical_images(call)) return false;
  if (v(node).op->kind == Kind::window) return true;
  for (size_t i = 0; i < call.arrays.size(); ++i) {
    const CallRole role = call.arrays[i].role;
    if (role != CallRole::weights && role != CallRole::weights_gradient) continue;
    const int operand = static_cast<int>(i);
    const Value& weights = v(operand < v(node).operands ? v(node).in[operand] : node);
    const int channels = weights.rank - 2;
    if (call.window.groups > 1) return (weights.wide >> channels & 1) == 0;
    return is_dense(call.window) && (weights.wide & ((1 << channels) - 1)) == 0;
  }
  return false;
}

bool Fuser::stays_logical(int32_t node, const CallDescription& call) {
  if (!may_be_logical(node, call)) return false;
  for (int i = 0; i < v(node).operands; ++i) {
    const int32_t operand = plain(v(node).in[i]);
    if (v(storage(operand)).channels_first || channels_first_[static_cast<size_t>(operand)] >= 0) return false;
  }
  if (wanted_first_.empty()) find_wanted_first();
  return !wanted_first_[static_cast<size_t>(node)];
}

/// Whether the node takes images in either order, and gives them in that.
bool Fuser::keeps_order(int32_t node) const {
  const Kind kind = v(node).op->kind;
  if (kind == Kind::elementwise || kind == Kind::argument || kind == Kind::window) return true;
  if (v(node).op->movement == Movement::concat) return true;
  return sums_weighed(*v(node).op) && is_spatial(v(node).attributes.as<WeighedAttributes>(), v(node).rank);
}

/// Values of images that a later convolution wants in CWHN, itself or by ops that keep the order.
void Fuser::find_wanted_first() {
  wanted_first_.assign(s_.graph.values.size(), false);
  for (int32_t node = s_.graph.nodes - 1; node >= 0; --node) {
    const Kind kind = v(node).op->kind;
    const bool passes = wanted_first_[static_cast<size_t>(node)] && keeps_order(node);
    const std::optional<CallDescription> call = kind == Kind::contraction ? call_of(node) : std::nullopt;
    const bool logical = call && !wanted_first_[static_cast<size_t>(node)] && may_be_logical(node, *call);
    for (int i = 0; i < v(node).operands; ++i) {
      const bool wants = call && !logical && target_.order(*call, static_cast<size_t>(i)) == Order::channels_first;
      const int32_t operand = v(node).in[i];
      if (operand >= 0 && (wants || passes) && orders_differ(operand))
        wanted_first_[static_cast<size_t>(operand)] = true;
    }
  }
}

}  // namespace rosin::plan
