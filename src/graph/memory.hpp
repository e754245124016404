// Memory: counted memory of one array on one device, with its own release function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "graph/counting.hpp"

namespace rosin {

/// Memory that arrays stand in. Whoever drops the last owner calls `release`, which frees memory and struct.
struct Memory {
  std::atomic<int> owners{1};
  int device = 0;  // index into the devices of the process; 0 is the CPU
  void* data = nullptr;
  size_t bytes = 0;
  void (*release)(Memory* self) noexcept = nullptr;
  // The last runs behind their threads (run/cpu_stream.hpp) that use it, and that write it.
  std::atomic<uint64_t> used_by{0};
  std::atomic<uint64_t> written_by{0};
};

/// Runs behind their threads have numbers; all up to this one are over.
inline constinit std::atomic<uint64_t> finished_runs{0};

inline bool is_over(const std::atomic<uint64_t>& run) noexcept {
  return run.load(std::memory_order_relaxed) <= finished_runs.load(std::memory_order_acquire);
}

inline void retain(Memory* buffer) noexcept { add_to(buffer->owners, 1, std::memory_order_relaxed); }
inline void release(Memory* buffer) noexcept {
  if (add_to(buffer->owners, -1, std::memory_order_acq_rel) == 1) buffer->release(buffer);
}

}  // namespace rosin
