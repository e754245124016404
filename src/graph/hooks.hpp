// The one inversion of the house: graph starts evaluation and takes memory but may not see run. src/devices/start.cpp
// installs both functions.
#pragma once

#include <cstddef>

namespace rosin {

struct Memory;
struct Node;
class Context;

/// Why an evaluation is asked for.
enum class Moment {
  read,      // values are wanted: they are there when it returns
  step_end,  // a step of training is recorded: whoever reads a value later waits for it
};

struct MemoryRequest {
  size_t bytes;
  int device = 0;              // position; 0 is the CPU
  const char* what = nullptr;  // not null: the system has refused these bytes to this op; only the Error is wanted
};

struct Hooks {
  /// Evaluates what is pending in the context (all its user-held nodes), and `target` in any case (may be null).
  void (*evaluate)(Context& context, Node* target, Moment moment) = nullptr;
  /// Memory for an array. Error (memory) that says what is in use.
  Memory* (*allocate)(const MemoryRequest& request) = nullptr;
};

extern Hooks hooks;

}  // namespace rosin
