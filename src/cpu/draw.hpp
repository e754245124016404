// Random numbers inside fused kernels. Read first: base/philox.hpp.
#pragma once

#include <cstdint>

#include "scalar/scalar_code.hpp"

namespace rosin::cpu {

/// Writes numbers [begin, begin + count) of the draw of `key` from block `counter` on.
using DrawLoop = void (*)(void* out, int64_t begin, int64_t count, uint64_t key, uint64_t counter);

/// Of Float32 or Float64: the fastest on this processor, all with the same bits.
DrawLoop draw_loop(ScalarType type);

/// Blocks that are drawn side by side, and their words.
inline constexpr int64_t blocks_together = 8, words_together = 4 * blocks_together;

/// The words of the blocks from `block` on, one block after another.
void draw_words(uint32_t (&words)[words_together], uint64_t key, uint64_t block);

}  // namespace rosin::cpu
