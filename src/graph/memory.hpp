// Memory: counted memory of one array on one device, with what can be done with its kind of memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "graph/counting.hpp"
#include "graph/ticket.hpp"

namespace rosin {

struct Memory;

/// What became of a piece of work that changes memory: not known yet, done, or given up, which left the memory alone.
enum class Fate { unknown, done, given_up };

/// Whether runs have read a memory since it was written, and whether other forms of it are kept (packed_forms.hpp).
enum class Reading : uint8_t { none, once, packed };

/// One table for each kind of memory; who makes the memory owns the table.
struct MemoryOperations {
  /// Frees memory and struct.
  void (*release)(Memory* self) noexcept;
  /// Waits until the host may read `data`: what writes the memory is over. Null where nothing but its own thread writes
  /// it. (The host reads memory of devices by copies, which wait themselves.)
  void (*wait)(const Memory& self) = nullptr;
  /// Copies to or from memory of the CPU, or of another device; null for memory of the CPU.
  void (*copy)(Memory& target, Memory& source, size_t bytes) = nullptr;
  /// What became of work that was to change the memory; null: it is always done.
  Fate (*fate)(const Memory& self, Ticket work) = nullptr;
};

/// Memory that arrays stand in. Whoever drops the last owner releases it. Owners are counted by all threads.
struct Memory {
  std::atomic<int> owners{1};
  int device = 0;  // index into the devices of the process; 0 is the CPU
  void* data = nullptr;
  size_t bytes = 0;
  const MemoryOperations* operations = nullptr;
  std::atomic<Ticket> used_by;     // the last work of another thread that uses it; devices keep one a stream
  std::atomic<Ticket> written_by;  // the last work of another thread, or of a device, that writes it
  std::atomic<Reading> reading{Reading::none};
};

/// Waits while work of another thread writes the memory.
inline void wait_for_values(const Memory& memory) {
  if (!is_over(memory.written_by)) memory.operations->wait(memory);
}

inline Fate fate_of(const Memory& memory, Ticket work) {
  return memory.operations->fate ? memory.operations->fate(memory, work) : Fate::done;
}

inline void retain(Memory* buffer) noexcept { add_to(buffer->owners, 1, std::memory_order_relaxed); }
inline void release(Memory* buffer) noexcept {
  if (add_to(buffer->owners, -1, std::memory_order_acq_rel) == 1) buffer->operations->release(buffer);
}

}  // namespace rosin
