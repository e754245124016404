// State: the registers of one running chunk of a fused kernel.
#pragma once

#include "cpu/fused.hpp"

namespace rosin::cpu {

/// Memory of the calling thread for tiles, at least `bytes`; grows, and stays with the thread.
unsigned char* thread_scratch(size_t bytes);

struct FusedKernel::State {
  State(const FusedKernel& kernel, const RunData& run, int64_t chunk)
      : data(run),
        slot_bytes((static_cast<size_t>(kernel.tile_) * 8 + 63) / 64 * 64),
        partials(kernel.partials_.get() + static_cast<size_t>(chunk) * kernel.partial_bytes_) {
    const size_t registers = kernel.kernel_->registers;
    unsigned char* memory = thread_scratch(registers * (slot_bytes + sizeof(void*)) + slot_bytes + 64);
    pointers = reinterpret_cast<void**>(memory);
    slots = memory + (registers * sizeof(void*) + 63) / 64 * 64;
    spare = slots + registers * slot_bytes;
    for (size_t i = 0; i < registers; ++i) pointers[i] = slots + i * slot_bytes;
  }

  void* slot(uint16_t reg) { return slots + reg * slot_bytes; }
  void* partial(const Root& root) { return partials + root.partial; }

  const RunData& data;
  size_t slot_bytes;
  unsigned char* partials;
  void** pointers;        // where each register is now: its slot, or memory of an array
  unsigned char* slots;
  unsigned char* spare;   // one tile for conversions
};

}  // namespace rosin::cpu
