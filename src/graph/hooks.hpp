// The one inversion of the house: graph must start evaluation but may not see run, which installs these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rosin/array.hpp>
#include <rosin/dtype.hpp>

#include "graph/memory.hpp"

namespace rosin {

struct Node;
class Context;

struct Hooks {
  /// Evaluates what is pending in the context (all its user-held nodes), and `target` in any case (may be null).
  void (*evaluate)(Context& context, Node* target) = nullptr;
  /// Evaluates what is pending as well, but may return before it is computed: whoever reads a value waits for it.
  void (*evaluate_behind)(Context& context) = nullptr;
  /// Waits until the run of this number is over.
  void (*wait_for_run)(uint64_t run) = nullptr;
  /// Memory for an array of the CPU.
  Memory* (*allocate)(size_t bytes) = nullptr;
  /// Copies elements with conversion between element types (host memory, contiguous).
  void (*convert)(void* target, DType target_type, const void* source, DType source_type, int64_t count) = nullptr;
  /// The array on the device at this position (0 is the CPU).
  Array (*transfer)(const Array& x, int position) = nullptr;
  /// "CPU", "CUDA:0": the device at this position.
  std::string (*device_text)(int position) = nullptr;
};

extern Hooks hooks;

/// Waits while a run behind its thread writes the memory.
inline void wait_for_values(const Memory& memory) {
  if (!is_over(memory.written_by)) hooks.wait_for_run(memory.written_by.load(std::memory_order_relaxed));
}

/// Pending nodes after which recording evaluates by itself.
inline constexpr int64_t pending_limit = 20000;

}  // namespace rosin
