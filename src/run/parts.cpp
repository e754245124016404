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

/// What writes it may be under way still: then there is nothing to look at yet. Memory of a user may change once no
/// array of it is there, which a part outlives.
bool has_values_for_all(const Node& whole) {
  return whole.device == 0 && whole.ready() && whole.users() != 0 && !is_scalar(whole) && whole.buffer &&
         whole.buffer->operations != &lent_memory && is_over(whole.buffer->written_by);
}

void become_ready(Node& node, Memory* buffer) {
  node.buffer = buffer;
  node.mark = 0;  // what reads it may have marked it as needed; it is a leaf now, and in no table yet
  node.state.store(NodeState::ready, std::memory_order_release);
}

}  // namespace

bool slice_has_become_part(Node& node) {
  if (!node.in[0] || !has_values_for_all(*node.in[0])) return false;
  const Node& whole = *node.in[0];
  const auto range = node.attributes.as<SliceAttributes>();
  const size_t bytes = bytes_of(node.dtype, node.shape());
  if (bytes == 0 || !lies_in_one_piece(range, node, whole)) return false;
  const size_t one = bytes / static_cast<size_t>(node.sizes[range.dim]);
  become_ready(node, part_of(*whole.buffer, one * static_cast<size_t>(range.start), bytes));
  return true;
}

bool reshaped_slice_has_become_part(Node& node) {
  Node* const part = node.in[0];
  if (!part || part->ready() || part->recorder != node.recorder || part->op->movement != Movement::slice) return false;
  if (!slice_has_become_part(*part)) return false;
  retain(part->buffer);
  become_ready(node, part->buffer);
  return true;
}

}  // namespace rosin
