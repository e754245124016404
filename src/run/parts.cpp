#include "run/parts.hpp"

#include "graph/attributes.hpp"
#include "graph/leaf.hpp"

namespace rosin {
namespace {

bool lies_in_one_piece(const SliceAttributes& range, const Node& part, const Node& whole) {
  const auto dim = static_cast<int>(range.dim);
  if (range.step != 1 && part.sizes[dim] != 1) return false;
  for (int d = dim + 1; d < whole.rank; ++d) {
    if (whole.sizes[d] != 1) return false;
  }
  return true;
}

/// What writes it may be under way still: then there is nothing to look at yet.
bool has_values_for_all(const Node& whole) {
  return whole.device == 0 && whole.ready() && whole.users() != 0 && !is_scalar(whole) && whole.buffer &&
         is_over(whole.buffer->written_by);
}

}  // namespace

bool slice_has_become_part(Node& node) {
  if (!node.in[0] || !has_values_for_all(*node.in[0])) return false;
  const Node& whole = *node.in[0];
  const auto range = node.attributes.as<SliceAttributes>();
  const size_t bytes = bytes_of(node.dtype, node.shape());
  if (bytes == 0 || !lies_in_one_piece(range, node, whole)) return false;
  const size_t one = bytes / static_cast<size_t>(node.sizes[range.dim]);
  node.buffer = part_of(*whole.buffer, one * static_cast<size_t>(range.start), bytes);
  node.state.store(NodeState::ready, std::memory_order_release);
  return true;
}

}  // namespace rosin
