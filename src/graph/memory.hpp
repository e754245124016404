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
  int device = 0;  // index into the runtime's devices; 0 is the CPU
  void* data = nullptr;
  size_t bytes = 0;
  void (*release)(Memory* self) noexcept = nullptr;
};

inline void retain(Memory* buffer) noexcept { add_to(buffer->owners, 1, std::memory_order_relaxed); }
inline void release(Memory* buffer) noexcept {
  if (add_to(buffer->owners, -1, std::memory_order_acq_rel) == 1) buffer->release(buffer);
}

}  // namespace rosin
