// Which instructions this processor has, for what is compiled for several sets of them.
#pragma once

#include <cstdint>

namespace rosin {

/// What loops are compiled for: wide is x86-64-v3 (AVX2, FMA, F16C), widest x86-64-v4 (AVX-512). All give the same
/// bits.
enum class InstructionSet : uint8_t { baseline, wide, widest };
/// The widest one that this processor has; asked once.
InstructionSet best_instruction_set() noexcept;
/// Whether two of the widest vectors are multiplied at a time, as Intel's processors with AVX-512 (most of them) and
/// Zen 5 do: then reading operands, and not multiplying, is what products wait for. Zen 4 multiplies one at a time.
bool multiplies_widest_in_pairs() noexcept;
/// Whether it is such a processor with a first cache of 48 KB: Zen 5, or one with large caches.
bool has_large_first_cache() noexcept;
/// Whether it is one of Intel's from Sapphire Rapids on, with a first cache of 48 KB and a second one of 2 MB: known by
/// its arithmetic of Float16, which came with them.
bool has_large_caches() noexcept;

}  // namespace rosin
