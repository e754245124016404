// Neighbouring launches whose items work alone, and which touch nothing that another of them writes, become one: the
// updates of an optimiser, one a parameter, cost one launch or a few. The groups of one come behind those of another.
// Which ones are joined follows from structure alone: they write results of the run, never the arena.
#include <algorithm>

#include "kernels/launches.hpp"

namespace rosin::kernels {
namespace {

constexpr size_t most_argument_bytes = 960;  // OpenCL promises 1024
constexpr size_t most_parts = 16;
constexpr size_t most_instructions = 4096;  // longer texts take compilers long, and much memory of those for CPUs

size_t argument_bytes(const Launch& launch) { return 16 * launch.buffers.size() + 8 * launch.numbers.size() + 16; }

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

/// Appends one launch to `into`, whose first instruction is the number of the group: it does what groups from
/// `begin` on do. Where a part begins is a number of the launch, so that the code does not depend on sizes.
class Joiner {
 public:
  Joiner(Launch& into, const Launch& launch) : into_(into), code_(into.code), launch_(launch), begin_(into.groups[0]) {}

  void run() {
    begin_part();
    for (KernelInstruction instruction : launch_.code.instructions) add(instruction);
    code_.instructions.push_back(made(KernelOperation::end_if, ScalarType::int32));
    code_.buffers.insert(code_.buffers.end(), launch_.code.buffers.begin(), launch_.code.buffers.end());
    code_.parameters.insert(code_.parameters.end(), launch_.code.parameters.begin(), launch_.code.parameters.end());
    into_.buffers.insert(into_.buffers.end(), launch_.buffers.begin(), launch_.buffers.end());
    into_.numbers.insert(into_.numbers.end(), launch_.numbers.begin(), launch_.numbers.end());
    into_.groups[0] += launch_.groups[0];
    if (into_.what.find(launch_.what) == std::string::npos)
      into_.what.append(into_.what.empty() ? "" : " ").append(launch_.what);
  }

 private:
  uint32_t put(const KernelInstruction& instruction) {
    code_.instructions.push_back(instruction);
    return static_cast<uint32_t>(code_.instructions.size() - 1);
  }

  uint32_t number(int64_t value) {
    code_.parameters.push_back(ScalarType::int32);
    into_.numbers.push_back({ScalarType::int32, value, -1});
    return put(
        made(KernelOperation::parameter, ScalarType::int32, 0, static_cast<int64_t>(code_.parameters.size() - 1)));
  }

  void begin_part() {
    const uint32_t begin = number(begin_), end = number(begin_ + launch_.groups[0]);
    const uint32_t reached = put(make_instruction(Primitive::less_equal, ScalarType::boolean, {begin, 0}));
    const uint32_t before = put(make_instruction(Primitive::less, ScalarType::boolean, {0, end}));
    const uint32_t own = put(make_instruction(Primitive::logical_and, ScalarType::boolean, {reached, before}));
    put(made(KernelOperation::begin_if, ScalarType::boolean, own));
    group_ = put(make_instruction(Primitive::subtract, ScalarType::int32, {0, begin}));
    parameters_ = static_cast<int64_t>(code_.parameters.size());
  }

  void add(KernelInstruction instruction) {
    if (instruction.is(KernelOperation::group) && instruction.immediate == 0) {
      const bool wide = instruction.type != ScalarType::int32;
      places_.push_back(wide ? put(make_instruction(Primitive::convert, instruction.type, {group_})) : group_);
      return;
    }
    for (uint32_t& operand : instruction.operands) operand = operand < places_.size() ? places_[operand] : 0;
    if (buffer_of(instruction) >= 0) instruction.immediate += static_cast<int64_t>(code_.buffers.size());
    if (instruction.is(KernelOperation::parameter)) instruction.immediate += parameters_;
    places_.push_back(put(instruction));
  }

  Launch& into_;
  KernelCode& code_;
  const Launch& launch_;
  int64_t begin_, parameters_ = 0;
  uint32_t group_ = 0;
  std::vector<uint32_t> places_;  // where the instructions of the launch stand
};

Launch joined(std::span<const Launch> launches) {
  Launch whole;
  whole.code.name = "parts";
  whole.code.group = launches.front().code.group;
  whole.code.instructions.push_back(made(KernelOperation::group, ScalarType::int32));
  whole.groups[0] = 0;
  for (const Launch& launch : launches) Joiner(whole, launch).run();
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
