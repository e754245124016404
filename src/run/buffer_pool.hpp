// Memory of arrays on the CPU: size classes, free buffers kept for the next step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/memory.hpp"

namespace rosin {

/// A buffer of at least `bytes`, aligned to 64; Error (memory) when the system has none left, or the limit is reached.
Memory* allocate_buffer(size_t bytes);

/// In bytes: what arrays and plans hold, what is kept for the next ones, the most that was held at a time, and the
/// limit of the first two together (0: none).
struct BufferUsage {
  int64_t live = 0, pooled = 0, peak = 0, limit = 0;
};
BufferUsage buffer_usage();
void set_buffer_limit(int64_t bytes);
/// A step is over. Free buffers that the last steps had no use for go when there are too many bytes of them.
void count_step() noexcept;
/// Gives all free buffers back.
void trim_buffers();

}  // namespace rosin
