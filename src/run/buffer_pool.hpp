// Memory of arrays and of runs on the CPU: size classes, free buffers kept for the next step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/memory.hpp"

namespace rosin {

/// A buffer of at least `bytes`, aligned to 64; Error (memory) when the system has none left, or the limit is reached.
Memory* allocate_buffer(size_t bytes);
/// The same for a run: when it is released, and the runs that use it are over, it waits for the next run.
Memory* borrow_arena(size_t bytes);

/// In bytes: what arrays and runs hold, what is kept for the next ones, the most that was held at a time, and the limit
/// of the first two together (0: none). Of these: what runs have borrowed, and the arenas that are kept for the next
/// runs. And how many buffers the system has given so far.
struct BufferUsage {
  int64_t live = 0, pooled = 0, peak = 0, limit = 0, borrowed = 0, arenas = 0, made = 0;
};
BufferUsage buffer_usage();
void set_buffer_limit(int64_t bytes);
/// Bytes of idle arenas that are kept.
void set_arena_limit_of_cpu(int64_t bytes);
/// A step is over. Free buffers that the last steps had no use for go when there are too many bytes of them.
void count_step() noexcept;
/// Gives all free buffers back.
void trim_buffers();

}  // namespace rosin
