// The one inversion of the house: graph starts evaluation and takes memory, and what is recorded may depend on what a
// device's library computes, but neither may see run. src/devices/start.cpp installs the functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rosin/dtype.hpp>

#include "graph/attributes.hpp"

namespace rosin {

struct Memory;
struct Node;
class Context;

/// Why an evaluation is asked for.
enum class Moment {
  read,      // values are wanted: they are there when it returns
  last_use,  // the same, of an array whose handle goes then, and with it perhaps others of the same expression
  step_end,  // a step of training is recorded: whoever reads a value later waits for it
};

struct MemoryRequest {
  size_t bytes;
  int device = 0;              // position; 0 is the CPU
  const char* what = nullptr;  // not null: the system has refused these bytes to this op; only the Error is wanted
};

/// A recurrent layer over a batch of sequences, on a device other than the CPU.
struct RecurrentLayer {
  int device = 1;
  SequenceCell cell = SequenceCell::tanh;
  DType type = DType::Float32;
  int64_t features = 0, out = 0, steps = 0, batch = 0;
};

struct Hooks {
  /// Evaluates what is pending in the context (all its user-held nodes), and `target` in any case (may be null).
  void (*evaluate)(Context& context, Node* target, Moment moment) = nullptr;
  /// Memory for an array. Error (memory) that says what is in use.
  Memory* (*allocate)(const MemoryRequest& request) = nullptr;
  /// Bytes that the device's library keeps of the layer for its gradient, in the math mode that the thread records in;
  /// -1: it does not compute it.
  int64_t (*recurrent_reserve)(const RecurrentLayer& layer) = nullptr;
  /// Whether the CPU computes attention of BFloat16 as it is, which has no gradient.
  bool (*attends_bfloats)() noexcept = nullptr;
};

extern Hooks hooks;

}  // namespace rosin
