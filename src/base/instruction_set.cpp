// See instruction_set.hpp.
#include "base/instruction_set.hpp"

namespace rosin {
namespace {

InstructionSet ask_processor() noexcept {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
  const bool widest = wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return widest ? InstructionSet::widest : wide ? InstructionSet::wide : InstructionSet::baseline;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace

InstructionSet best_instruction_set() noexcept {
  static const InstructionSet set = ask_processor();
  return set;
}

}  // namespace rosin
