// Where an evaluation must not change anything before others are ready too, such as a step that processes make
// together: whoever waits for them is told when all memory is there. Read next: hooks.hpp (who asks for evaluations),
// run/evaluate.cpp (who runs them).
#pragma once

#include <cstddef>

namespace rosin {

/// Of what the calling thread evaluates as long as the object lives. Not nested.
class RunGate {
 public:
  RunGate() noexcept { of_thread_ = this; }
  RunGate(const RunGate&) = delete;
  RunGate& operator=(const RunGate&) = delete;

  /// The calling thread's, or null.
  static RunGate* of_thread() noexcept { return of_thread_; }

  /// A run has its plan and all memory, `bytes` of which hold nothing yet, and has written nothing. What this throws
  /// ends the run, and the evaluation.
  virtual void memory_is_there(size_t bytes) = 0;
  /// Whether runs may write. What fails before is not tried in parts.
  bool is_open() const noexcept { return is_open_; }

 protected:
  ~RunGate() { of_thread_ = nullptr; }
  bool is_open_ = false;

 private:
  static inline constinit thread_local RunGate* of_thread_ = nullptr;
};

}  // namespace rosin
