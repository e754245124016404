// State: the registers of one running chunk of a fused kernel.
#pragma once

#include <mutex>
#include <new>

#include "cpu/fused.hpp"

namespace rosin::cpu {

/// Memory for strips, at least `bytes`: the calling thread's own, which grows and stays with it. When the system has no
/// more, the reserve, which is `locked` then: a kernel that has begun to overwrite its operands must not fail.
unsigned char* thread_scratch(size_t bytes, std::unique_lock<std::mutex>& locked) noexcept;
/// Makes the reserve at least this large.
void reserve_scratch(size_t bytes);

/// Columns of a matrix that stands row by row, turned; they follow this header, at a line of their own.
struct alignas(64) Panel {
  int64_t first = 0, end = 0;  // columns

  unsigned char* values() { return reinterpret_cast<unsigned char*>(this + 1); }
};

struct FusedKernel::State {
  State(const FusedKernel& kernel, const RunData& run, int64_t chunk_end)
      : data(run), slot_bytes(kernel.slot_bytes()), end(chunk_end) {
    const size_t registers = kernel.registers_;
    unsigned char* memory = thread_scratch(kernel.scratch_bytes(), reserve);
    pointers = reinterpret_cast<void**>(memory);
    arguments = pointers + registers;
    slots = memory + kernel.pointer_bytes();
    spare = slots + registers * slot_bytes;
    lanes = spare + slot_bytes;
    for (size_t i = 0; i < registers; ++i) pointers[i] = slots + i * slot_bytes;
    panels = lanes + kernel.lanes_bytes_;
    if (kernel.panel_bytes_ == 0) return;
    for (const Load& load : kernel.loads_) {
      if (load.panel_columns > 0) new (panels + load.panel_at) Panel;
    }
  }

  void* slot(uint16_t reg) { return slots + reg * slot_bytes; }

  const RunData& data;
  std::unique_lock<std::mutex> reserve;
  size_t slot_bytes;
  int64_t end;             // of the chunk
  PlaneRuns::Place place;  // of the strip, where it lies in a run of planes
  void** pointers;         // where each register is now: its slot, or memory of an array
  void** arguments;        // of the pass that runs
  unsigned char* slots;
  unsigned char* spare;   // one strip for conversions
  unsigned char* lanes;   // of roots over planes
  unsigned char* panels;  // of loads that have one
};

/// The instruction that most kernels consist of; small arrays pay for every step of it.
inline void FusedKernel::apply(const Ready& instr, const Strip& strip, State& state) const {
  const void* in[Node::max_positions];
  in[0] = state.pointers[instr.in[0]];
  in[1] = state.pointers[instr.in[1]];
  for (int i = 2; i < instr.count; ++i) in[i] = state.pointers[instr.in[i]];
  void* out = instr.forward < 0 ? state.slot(instr.dst)
                                : output(static_cast<uint16_t>(instr.forward), strip, instr.row, state.data);
  instr.loop(out, in, instr.row ? strip.rows : strip.count);
  state.pointers[instr.dst] = out;
}

}  // namespace rosin::cpu
