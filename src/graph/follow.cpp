// Constants follow: see follow.hpp.
#include "graph/follow.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include <rosin/error.hpp>

#include "graph/context.hpp"
#include "graph/device_facts.hpp"
#include "graph/handle.hpp"
#include "graph/kinds.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "graph/transfer.hpp"

namespace rosin {
namespace {

Array handle(const Node* node) { return handle_of(const_cast<Node*>(node)); }

/// What `root` is computed from, in recording order and with itself last; empty where something is no constant.
std::vector<const Node*> constants_below(const Node* root) {
  std::vector<const Node*> found{root}, open{root};
  std::unordered_map<const Node*, bool> seen{{root, true}};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (is_scalar(*node) || (is_constant(*node) && node->device == 0)) continue;
    const bool pending = node->recorder == &Context::current() && !node->ready();
    if (!pending || node->device != 0 || !info(node->op->kind).repeatable) return {};
    for (const Node* operand : node->arrays()) {
      if (!operand || !seen.try_emplace(operand, true).second) continue;
      found.push_back(operand);
      open.push_back(operand);
    }
  }
  // Leaves and numbers come first: other threads, with sequences of their own, may have made them.
  const auto order = [](const Node* node) {
    return is_scalar(*node) || is_constant(*node) ? uint64_t{0} : node->sequence;
  };
  std::sort(found.begin(), found.end(), [&](const Node* a, const Node* b) { return order(a) < order(b); });
  return found;
}

bool is_wide(const Node* node) { return node->dtype == DType::Float64 || node->dtype == DType::ComplexF64; }

/// The constant on another device: recorded again there, with what it is computed from. What is computed in Float64 on
/// the way, where the device has none, is computed here.
Array made_there(const std::vector<const Node*>& constants, uint8_t device) {
  const bool fits = device_facts(device).float64 || std::none_of(constants.begin(), constants.end(), is_wide);
  if (!fits && !is_wide(constants.back())) return transferred(handle(constants.back()), device);
  std::unordered_map<const Node*, Array> there;
  for (const Node* node : constants) {
    if (is_scalar(*node) || is_constant(*node)) {
      there[node] = transferred(handle(node), device);
      continue;
    }
    std::vector<Node*> in;
    for (const Node* operand : node->arrays()) in.push_back(operand ? there.at(operand).node() : nullptr);
    there[node] = record_again(*node, in, device);
    there[node].node()->recorded_in = node->recorded_in;
  }
  return there.at(constants.back());
}

[[noreturn]] void throw_two_devices(const Op& op, const Node* a, const Node* b) {
  throw Error(ErrorKind::device, std::string(op.name) + ": operands must be on one device; got " +
                                     device_text(a->device) + " and " + device_text(b->device) +
                                     "; move one with x | device");
}

}  // namespace

bool is_made_of_constants(const Node& node) { return node.device == 0 && !constants_below(&node).empty(); }

Gathered::Gathered(const Op& op, const Node* const* operands, int count)
    : arrays_(static_cast<size_t>(count)), nodes_(static_cast<size_t>(count)) {
  std::vector<std::vector<const Node*>> constants(arrays_.size());
  const Node* placed = nullptr;
  for (size_t i = 0; i < constants.size(); ++i) {
    if (is_scalar(*operands[i])) continue;
    if (operands[i]->device == 0) constants[i] = constants_below(operands[i]);
    if (!constants[i].empty()) continue;
    if (placed && placed->device != operands[i]->device) throw_two_devices(op, placed, operands[i]);
    placed = operands[i];
  }
  for (size_t i = 0; i < constants.size(); ++i) {
    const bool follows = placed && placed->device != 0 && !constants[i].empty();
    arrays_[i] = follows ? made_there(constants[i], placed->device) : handle(operands[i]);
    nodes_[i] = arrays_[i].node();
  }
}

}  // namespace rosin
