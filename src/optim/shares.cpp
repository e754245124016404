// See shares.hpp.
#include "optim/shares.hpp"

#include <vector>

#include <rosin/complex.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"

namespace rosin {

detail::Sharing::~Sharing() = default;

void assign_owners(StateTree& tree) {
  detail::Sharing* const sharing = tree.leaves.empty() ? nullptr : tree.leader().rule->sharing();
  if (!sharing) return;
  std::vector<int64_t> bytes;
  bytes.reserve(tree.leaves.size());
  for (const StateLeaf& leaf : tree.leaves) bytes.push_back(static_cast<int64_t>(bytes_of(leaf.dtype, leaf.shape)));
  const std::vector<int> owners = sharing->owners(bytes);
  for (size_t i = 0; i < owners.size(); ++i) tree.leaves[i].owner = owners[i];
}

bool is_elsewhere(const StateLeaf& leaf) { return leaf.owner >= 0 && leaf.owner != leaf.rule->sharing()->process(); }

detail::Sharing* sharing_of(const StateTree& tree) {
  if (tree.leaves.empty() || tree.leader().owner < 0) return nullptr;
  return tree.leader().rule->sharing();
}

void begin(StateLeaf& leaf, const Array& x) {
  const DeviceScope scope(*x.node());
  leaf.rule->init(is_complex(x.dtype()) ? view_as_real(x) : x);
}

}  // namespace rosin
