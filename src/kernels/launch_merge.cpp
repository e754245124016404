// Neighbouring launches whose items work alone, and which touch nothing that another of them writes, become one: the
// updates of an optimiser, one a parameter, cost one launch or a few. Group dim 1 says whose part a group does.
// Which ones are joined follows from structure alone: they write results of the run, never the arena.
#include <algorithm>

#include "kernels/launches.hpp"

namespace rosin::kernels {
namespace {

constexpr size_t most_argument_bytes = 960;  // OpenCL promises 1024
constexpr size_t most_parts = 16;
constexpr size_t most_instructions = 4096;  // longer texts take compilers long, and much memory of those for CPUs

size_t argument_bytes(const Launch& launch) { return 16 * launch.buffers.size() + 8 * launch.numbers.size(); }

/// What a launch reads or writes outside of the arena.
struct Touched {
  std::vector<int64_t> read, written;
  bool writes_arena = false;
};

Touched touched(const Layout& layout, const Launch& launch) {
  const std::vector<char> stores = stored_buffers(launch.code);
  Touched found;
  for (size_t i = 0; i < stores.size(); ++i) {
    const std::optional<int64_t> memory = memory_of(layout, launch.buffers[i]);
    if (memory) (stores[i] ? found.written : found.read).push_back(*memory);
    else found.writes_arena = found.writes_arena || stores[i];
  }
  return found;
}

bool meet(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](int64_t x) { return std::find(b.begin(), b.end(), x) != b.end(); });
}

bool disturb(const Touched& a, const Touched& b) {
  return meet(a.written, b.written) || meet(a.written, b.read) || meet(a.read, b.written);
}

KernelInstruction made(KernelOperation operation, ScalarType type, uint32_t operand = 0, int64_t immediate = 0) {
  KernelInstruction instruction;
  instruction.operation = static_cast<uint16_t>(operation);
  instruction.type = type;
  instruction.operands[0] = operand;
  instruction.immediate = immediate;
  return instruction;
}

/// Appends one launch as part number `part` of `into`, whose first instruction is the group's place along dim 1.
void append(Launch& into, const Launch& launch, int64_t part) {
  KernelCode& code = into.code;
  KernelInstruction number, equal;
  number.operation = static_cast<uint16_t>(Primitive::literal);
  number.immediate = part;
  equal.operation = static_cast<uint16_t>(Primitive::equal);
  equal.type = ScalarType::boolean;
  equal.operands[1] = static_cast<uint32_t>(code.instructions.size());
  code.instructions.push_back(number);
  code.instructions.push_back(equal);
  code.instructions.push_back(made(KernelOperation::begin_if, ScalarType::boolean, equal.operands[1] + 1));
  const auto shift = static_cast<uint32_t>(code.instructions.size());
  for (KernelInstruction instruction : launch.code.instructions) {
    for (uint32_t& operand : instruction.operands) operand += shift;
    if (buffer_of(instruction) >= 0) {
      instruction.immediate += static_cast<int64_t>(code.buffers.size());
    }
    if (instruction.is(KernelOperation::parameter)) {
      instruction.immediate += static_cast<int64_t>(code.parameters.size());
    }
    code.instructions.push_back(instruction);
  }
  code.instructions.push_back(made(KernelOperation::end_if, ScalarType::int32));
  code.buffers.insert(code.buffers.end(), launch.code.buffers.begin(), launch.code.buffers.end());
  code.parameters.insert(code.parameters.end(), launch.code.parameters.begin(), launch.code.parameters.end());
  into.buffers.insert(into.buffers.end(), launch.buffers.begin(), launch.buffers.end());
  into.numbers.insert(into.numbers.end(), launch.numbers.begin(), launch.numbers.end());
  into.groups[0] = std::max(into.groups[0], launch.groups[0]);
  into.groups[1] = part + 1;
  if (into.what.find(launch.what) == std::string::npos)
    into.what.append(into.what.empty() ? "" : " ").append(launch.what);
}

Launch joined(std::span<const Launch> launches) {
  Launch whole;
  whole.code.name = "parts";
  whole.code.group = launches.front().code.group;
  whole.code.instructions.push_back(made(KernelOperation::group, ScalarType::int32, 0, 1));
  for (size_t i = 0; i < launches.size(); ++i) append(whole, launches[i], static_cast<int64_t>(i));
  name_by_hash(whole.code);
  return whole;
}

/// How many launches from `first` on can be joined; at least 1.
size_t run_length(const Layout& layout, const std::vector<Launch>& launches, size_t first) {
  std::vector<Touched> before;
  size_t bytes = 0, instructions = 0, last = first;
  for (; last < launches.size() && before.size() < most_parts; ++last) {
    const Launch& launch = launches[last];
    bytes += argument_bytes(launch);
    instructions += launch.code.instructions.size();
    if (!launch.alone || launch.groups[0] == 0) break;
    if (bytes > most_argument_bytes || instructions > most_instructions) break;
    Touched now = touched(layout, launch);
    const auto hinders = [&](const Touched& other) { return disturb(now, other); };
    if (now.writes_arena || std::any_of(before.begin(), before.end(), hinders)) break;
    before.push_back(std::move(now));
  }
  return std::max<size_t>(last - first, 1);
}

}  // namespace

void merge_launches(const Layout& layout, LaunchList& list) {
  std::vector<Launch> merged;
  for (size_t first = 0; first < list.launches.size();) {
    const size_t count = run_length(layout, list.launches, first);
    if (count == 1) merged.push_back(std::move(list.launches[first]));
    else merged.push_back(joined(std::span<const Launch>(list.launches).subspan(first, count)));
    first += count;
  }
  list.launches = std::move(merged);
}

}  // namespace rosin::kernels
