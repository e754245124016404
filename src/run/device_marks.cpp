// See device_marks.hpp.
#include "run/device_marks.hpp"

#include <algorithm>

namespace rosin {
namespace {

/// Of each output, its memory; null for what takes over that of a leaf.
std::vector<Memory*> made_memory(const plan::Layout& layout, const plan::RunMemory& memory) {
  std::vector<Memory*> made;
  auto next = memory.makes.begin();
  for (const plan::Output& output : layout.outputs) made.push_back(output.donor < 0 ? *next++ : nullptr);
  return made;
}

bool earlier(const DeviceMarks::Written& a, const DeviceMarks::Written& b) { return a.steps < b.steps; }

}  // namespace

DeviceMarks::DeviceMarks(const DeviceSteps& steps, const plan::RunMemory& memory) {
  if (!memory.listener || memory.listener->outputs().empty()) return;
  const std::span<const plan::EarlyOutput> outputs = memory.listener->outputs();
  const std::vector<Memory*> made = made_memory(steps.layout(), memory);
  for (size_t begin = 0, end = 0; begin < outputs.size(); begin = end) {
    size_t behind = 0;
    for (; end < outputs.size() && outputs[end].group == outputs[begin].group; ++end) {
      behind = std::max(behind, steps.written_after(outputs[end].output));
    }
    if (behind == 0 || behind == steps.steps.size()) continue;
    for (size_t i = begin; i < end; ++i) {
      written_.push_back({behind, made[static_cast<size_t>(outputs[i].output)]});
    }
  }
  std::stable_sort(written_.begin(), written_.end(), earlier);
  for (const Written& each : written_) {
    if (cuts_.empty() || cuts_.back() != each.steps) cuts_.push_back(each.steps);
  }
}

std::span<const DeviceMarks::Written> DeviceMarks::written_at(size_t steps) const {
  const auto [first, last] = std::equal_range(written_.begin(), written_.end(), Written{steps, nullptr}, earlier);
  return {first, last};
}

}  // namespace rosin
