// Kernels that overwrite memory of leaves store nothing once a check has failed on the device, until that was reported:
// the model stays what it was. Each such store asks one word of the device. Read first: launches.hpp.
#include <algorithm>

#include "kernels/launches.hpp"

namespace rosin::kernels {
namespace {

bool overwrites_leaf(const Layout& layout, const LaunchBuffer& buffer) {
  if (buffer.value < 0) return false;
  const Place& place = layout.places[static_cast<size_t>(buffer.value)];
  return place.where == Place::Where::output && layout.outputs[static_cast<size_t>(place.at)].donor >= 0;
}

/// What says whether the word of buffer number `guard` is 0; the answer is the last value.
std::vector<KernelInstruction> question(int64_t guard) {
  return {make_instruction(Primitive::literal, ScalarType::int32),
          make_instruction(KernelOperation::load, ScalarType::int64, {0}, guard),
          make_instruction(Primitive::literal, ScalarType::int64),
          make_instruction(Primitive::equal, ScalarType::boolean, {1, 2})};
}

/// Whether the buffer, or one that it may be, is one of these.
bool reaches(const KernelCode& code, int buffer, const std::vector<char>& these) {
  if (buffer < chosen_buffer) return these[static_cast<size_t>(buffer)];
  return std::any_of(code.instructions.begin(), code.instructions.end(), [&](const KernelInstruction& i) {
    return i.is(KernelOperation::choose) && i.immediate >> lanes_shift == buffer - chosen_buffer &&
           these[static_cast<size_t>(array_of(i))];
  });
}

void guard(Launch& launch, const std::vector<char>& overwritten) {
  KernelCode& code = launch.code;
  std::vector<KernelInstruction> whole = question(static_cast<int64_t>(code.buffers.size()));
  const auto clear = static_cast<uint32_t>(whole.size() - 1);
  std::vector<uint32_t> place(code.instructions.size(), 0);
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    KernelInstruction instruction = code.instructions[i];
    for (uint32_t& operand : instruction.operands) operand = place[operand];
    const bool store = is_store(instruction) && reaches(code, buffer_of(instruction), overwritten);
    if (store) whole.push_back(make_instruction(KernelOperation::begin_if, ScalarType::boolean, {clear}));
    place[i] = static_cast<uint32_t>(whole.size());
    whole.push_back(instruction);
    if (store) whole.push_back(make_instruction(KernelOperation::end_if, ScalarType::int32));
  }
  code.instructions = std::move(whole);
  code.buffers.push_back(DType::Int64);
  launch.buffers.push_back({-1, LaunchBuffer::guard});
  code.name = "guarded";
  name_by_hash(code);
}

}  // namespace

void guard_leaves(const Layout& layout, LaunchList& list) {
  for (Launch& launch : list.launches) {
    if (launch.call >= 0) continue;
    std::vector<char> overwritten;
    for (const LaunchBuffer& buffer : launch.buffers) overwritten.push_back(overwrites_leaf(layout, buffer));
    if (std::find(overwritten.begin(), overwritten.end(), 1) != overwritten.end()) guard(launch, overwritten);
  }
}

}  // namespace rosin::kernels
