#include "run/passing.hpp"

#include "graph/kinds.hpp"

namespace rosin {

bool leave_out_passing(const LastUse& use, std::vector<uint8_t>& held) {
  constexpr uint8_t cheap = 1, needed = 2;
  std::vector<uint8_t> found(use.order.size());
  const auto each_pending = [&](const Node& node, auto visit) {
    for (const Node* operand : node.arrays()) {
      if (operand && !operand->ready()) visit(found[operand->slot]);
    }
  };
  for (size_t n = 0; n < found.size(); ++n) {
    Node& node = *use.order[n];
    node.slot = static_cast<uint32_t>(n);
    bool is_cheap = node.sequence > use.evaluated && !is_costly(*node.op);
    each_pending(node, [&](uint8_t operand) { is_cheap = is_cheap && (operand & cheap); });
    found[n] = is_cheap ? cheap : 0;
    if (&node == use.target) found[n] |= needed;
  }
  bool any = false;
  for (size_t n = found.size(); n-- > 0;) {
    const Node& node = *use.order[n];
    if (!(found[n] & needed)) continue;
    each_pending(node, [&](uint8_t& operand) { operand |= needed; });
    if (&node == use.target || !held[n] || !(found[n] & cheap) || node.users() != 1) continue;
    held[n] = false;
    any = true;
  }
  return any;
}

}  // namespace rosin
