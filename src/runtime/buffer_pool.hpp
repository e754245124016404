// Memory of arrays on the CPU: size classes, free buffers kept for the next step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/memory.hpp"

namespace rosin {

/// A buffer of at least `bytes`, aligned to 64; Error (memory) when the system has none left.
Memory* allocate_buffer(size_t bytes);
int64_t live_buffer_bytes();
int64_t pooled_buffer_bytes();
/// Gives all free buffers back.
void trim_buffers();

}  // namespace rosin
