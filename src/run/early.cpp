// See early.hpp.
#include "run/early.hpp"

#include <algorithm>
#include <functional>

#include "graph/node.hpp"

namespace rosin {
namespace {

/// The step that writes each value last; as many as there are steps for a value that none writes.
std::vector<size_t> last_writers(const plan::Structure& structure) {
  std::vector<size_t> last(structure.graph.values.size(), structure.steps.size());
  for (size_t i = 0; i < structure.steps.size(); ++i) {
    for (const int32_t value : structure.steps[i].writes) last[static_cast<size_t>(value)] = i;
  }
  return last;
}

}  // namespace

constinit thread_local EarlyResults* EarlyResults::of_thread_ = nullptr;

EarlyResults::EarlyResults(std::span<const Array> arrays, Listener& listener) : listener_(listener) {
  for (size_t i = 0; i < arrays.size(); ++i) wanted_.push_back({arrays[i].node(), i});
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return std::less<>()(a.node, b.node); });
  of_thread_ = this;
}

EarlyResults::~EarlyResults() { of_thread_ = nullptr; }

std::span<const EarlyResults::Wanted> EarlyResults::wanted(const Node* node) const {
  const auto before = [](const Wanted& a, const Wanted& b) { return std::less<>()(a.node, b.node); };
  const auto [first, last] = std::equal_range(wanted_.begin(), wanted_.end(), Wanted{node, 0}, before);
  return {first, last};
}

plan::StepListener* EarlyResults::begin(const plan::Layout& layout, std::span<Node* const> nodes, void* const* memory) {
  written_.clear();
  told_ = 0;
  outputs_.clear();
  if (nodes.front()->device == 0) list_written(layout, nodes, memory);
  else list_outputs(layout, nodes);
  return this;
}

/// (What is a leaf's memory, or has no step, is told of by nobody: it is there when the run is over.)
void EarlyResults::list_written(const plan::Layout& layout, std::span<Node* const> nodes, void* const* memory) {
  const std::vector<size_t> last = last_writers(*layout.structure);
  for (const plan::Result& result : layout.results) {
    if (result.output < 0) continue;
    const auto value = static_cast<size_t>(layout.outputs[static_cast<size_t>(result.output)].value);
    if (last[value] == layout.structure->steps.size()) continue;
    for (const Wanted& each : wanted(nodes[static_cast<size_t>(result.node)])) {
      written_.push_back({last[value], each.array, memory[value]});
    }
  }
  std::sort(written_.begin(), written_.end(), [](const Written& a, const Written& b) { return a.step < b.step; });
}

/// (What takes over a leaf's memory may come with a guard, and is there when the run is over.)
void EarlyResults::list_outputs(const plan::Layout& layout, std::span<Node* const> nodes) {
  for (const plan::Result& result : layout.results) {
    if (result.output < 0 || layout.outputs[static_cast<size_t>(result.output)].donor >= 0) continue;
    for (const Wanted& each : wanted(nodes[static_cast<size_t>(result.node)])) {
      outputs_.push_back({result.output, listener_.group(each.array)});
    }
  }
  const auto earlier = [](const plan::EarlyOutput& a, const plan::EarlyOutput& b) { return a.group < b.group; };
  std::sort(outputs_.begin(), outputs_.end(), earlier);
}

void EarlyResults::over(size_t step) noexcept {
  for (; told_ < written_.size() && written_[told_].step <= step; ++told_) {
    listener_.written(written_[told_].array, written_[told_].elements);
  }
}

}  // namespace rosin
