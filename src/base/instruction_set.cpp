// See instruction_set.hpp.
#include "base/instruction_set.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace rosin {
namespace {

#ifdef __x86_64__
/// AVX512-FP16.
bool multiplies_halves() noexcept {
  constexpr unsigned bit = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bit) != 0;
}

/// F16C, which clang 16 has no name for in __builtin_cpu_supports.
bool converts_halves() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

InstructionSet ask_processor() noexcept {
#ifdef __x86_64__
  __builtin_cpu_init();
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && converts_halves();
  const bool widest = wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return widest ? InstructionSet::widest : wide ? InstructionSet::wide : InstructionSet::baseline;
#else
  return InstructionSet::baseline;
#endif
}

#ifdef __x86_64__
/// Zen 5 in the models that have two multipliers of 512 bits, of servers and desktops; those of notebooks have halves.
/// (The bit for it, FP512 of leaf 8000001A, is one that virtual machines hide.)
bool is_whole_zen5() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_is("amd") || __get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const unsigned family = ((a >> 8) & 15) + ((a >> 20) & 255), model = ((a >> 4) & 15) + ((a >> 12) & 240);
  return family == 0x1a && (model < 0x20 || (model >= 0x40 && model < 0x50));
}
#endif

bool has_paired_multipliers() noexcept {
#ifdef __x86_64__
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") || is_whole_zen5();
#else
  return false;
#endif
}

}  // namespace

InstructionSet best_instruction_set() noexcept {
  static const InstructionSet set = ask_processor();
  return set;
}

bool multiplies_widest_in_pairs() noexcept {
  static const bool in_pairs = best_instruction_set() == InstructionSet::widest && has_paired_multipliers();
  return in_pairs;
}

bool has_large_first_cache() noexcept {
#ifdef __x86_64__
  static const bool has = has_large_caches() || (multiplies_widest_in_pairs() && is_whole_zen5());
  return has;
#else
  return false;
#endif
}

bool has_large_caches() noexcept {
#ifdef __x86_64__
  static const bool has = multiplies_widest_in_pairs() && multiplies_halves();
  return has;
#else
  return false;
#endif
}

}  // namespace rosin
