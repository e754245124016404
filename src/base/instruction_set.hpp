// Which instructions this processor has, for what is compiled for several sets of them.
#pragma once

#include <cstdint>

namespace rosin {

/// What loops are compiled for: wide is x86-64-v3 (AVX2, FMA, F16C), widest x86-64-v4 (AVX-512). All give the same
/// bits.
enum class InstructionSet : uint8_t { baseline, wide, widest };
/// The widest one that this processor has; asked once.
InstructionSet best_instruction_set() noexcept;

}  // namespace rosin
