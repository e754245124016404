// Code of loops: written into a buffer, then copied to pages that are made executable and are not writable any more.
// Read first: machine_loop.hpp, written_loop.hpp.
#include "cpu/machine_loop.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/environment.hpp"
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include "cpu/loop_names.hpp"
#include "cpu/machine_narrow.hpp"
#include "cpu/machine_wide.hpp"
#include "cpu/written_loop.hpp"
#include "platform/executable_memory.hpp"
#endif

namespace rosin::cpu {

std::string LoopText::key() const {
  std::string key;
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const Instruction& made : code.list) {
    add(made.primitive);
    add(made.type);
    for (int i = 0; i < info(made.primitive).arity; ++i) add(made.operands[i]);
    if (info(made.primitive).arity == 0 || made.primitive == Primitive::convert) add(made.immediate);
  }
  for (const LoopOutput& output : outputs) {
    add(output.place);
    add(static_cast<uint8_t>(output.combines ? static_cast<int>(*output.combines) : 255));
    add(output.combines ? output.neutral : int64_t{output.shares});
    add(output.packing);
    add(output.fits);
    add(output.streams);
  }
  for (const LoopInput& input : inputs) {
    add(input.reads);
    add(input.packing);
    add(input.pairing);
    add(input.gaps);
  }
  add(code.list.size());
  add(outputs.size());
  return key;
}

#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
namespace {

constexpr size_t most_bytes = size_t{1} << 18;  // of one loop

class WrittenLoop final : public MachineLoop {
 public:
  WrittenLoop(const void* code, const WrittenCode& written) : memory_(code, written.bytes) {
    bytes_ = memory_.bytes();
    function_ = reinterpret_cast<Function>(memory_.code());
    if (function_ && loops_have_names())
      name_code({memory_.code(), written.bytes, written.name, written.frame}, entry_);
  }
  bool stands() const { return function_ != nullptr; }

 private:
  platform::ExecutableMemory memory_;
  platform::DebuggerEntry entry_;
};

/// Loops that kernels hold, by text. Never destroyed: kernels may be used while a process ends.
struct Loops {
  std::mutex lock;
  std::unordered_map<std::string, std::weak_ptr<const MachineLoop>> by_key;
  size_t sweep_at = 256;  // entries

  void sweep() {
    if (by_key.size() < sweep_at) return;
    std::erase_if(by_key, [](const auto& entry) { return entry.second.expired(); });
    sweep_at = std::max<size_t>(256, 2 * by_key.size());
  }
};

Loops& loops() {
  static Loops* loops = new Loops;
  return *loops;
}

bool is_narrowed() { return environment(Setting::jit) == "avx2"; }

/// Null where the code has no room, or the system gives none.
std::shared_ptr<const MachineLoop> made_loop(const CodeSource& source) {
  const auto buffer = std::make_unique_for_overwrite<unsigned char[]>(most_bytes);
  try {
    const WrittenCode written = source(buffer.get(), most_bytes);
    auto loop = std::make_shared<WrittenLoop>(buffer.get(), written);
    return loop->stands() ? loop : nullptr;
  } catch (const Xbyak::Error&) {
    return nullptr;
  }
}

template <class Writer> WrittenCode write(const LoopText& text, unsigned char* buffer, size_t bytes) {
  const OrderedText ordered = with_rare_code_together(text);
  const Writer writer(ordered, buffer, bytes);
  return {writer.getSize(), name_of(text), call_frame(writer.leaves_at())};
}

}  // namespace

bool has_wide_code() {
  static const bool wide = best_instruction_set() == InstructionSet::widest && !is_narrowed();
  return wide;
}

bool machine_code_works() {
  static const bool works = best_instruction_set() != InstructionSet::baseline &&
                            (is_narrowed() || environment_switch(Setting::jit).value_or(true));
  return works;
}

bool machine_knows(const ScalarCode& code) {
  return std::all_of(code.list.begin(), code.list.end(),
                     [&, knows = has_wide_code() ? WideWriter::knows : NarrowWriter::knows](const Instruction& made) {
                       return knows(code, made);
                     });
}

int machine_sums() { return has_wide_code() ? 6 : 2; }

std::optional<Primitive> machine_combines(const CombineBody& body, ScalarType type) {
  ScalarCode code;
  if (!body.code) return {};
  body.code(type, code);
  if (code.list.size() != 3 || code.result != 2) return {};
  const Instruction& made = code.list[2];
  const auto is_input = [&](uint16_t place, int64_t number) {
    return code.list[place].primitive == Primitive::input && code.list[place].immediate == number;
  };
  const bool joins = has_wide_code() ? WideWriter::combines_with(made.primitive, type)
                                     : NarrowWriter::combines_with(made.primitive, type);
  if (!joins || !is_input(made.operands[0], 0) || !is_input(made.operands[1], 1)) return {};
  return made.primitive;
}

std::shared_ptr<const MachineLoop> shared_loop(const std::string& key, const CodeSource& source) {
  {
    std::lock_guard lock(loops().lock);
    if (auto loop = loops().by_key[key].lock()) return loop;
  }
  auto loop = made_loop(source);
  std::lock_guard lock(loops().lock);
  loops().sweep();
  loops().by_key[key] = loop;
  return loop;
}

std::shared_ptr<const MachineLoop> machine_loop(const LoopText& text) {
  return shared_loop(text.key(), [&](unsigned char* buffer, size_t bytes) {
    return has_wide_code() ? write<WideWriter>(text, buffer, bytes) : write<NarrowWriter>(text, buffer, bytes);
  });
}

#else

bool machine_code_works() { return false; }
bool machine_knows(const ScalarCode&) { return false; }
int machine_sums() { return 0; }
std::optional<Primitive> machine_combines(const CombineBody&, ScalarType) { return {}; }
std::shared_ptr<const MachineLoop> machine_loop(const LoopText&) { return nullptr; }

#endif

}  // namespace rosin::cpu
