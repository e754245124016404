// Memory that holds machine code made at run time.
#pragma once

#include <cstddef>

namespace rosin::platform {

/// Pages of their own with a copy of some machine code, which are never writable and executable at once.
class ExecutableMemory {
 public:
  ExecutableMemory(const void* code, size_t bytes) noexcept;
  ExecutableMemory(const ExecutableMemory&) = delete;
  ExecutableMemory& operator=(const ExecutableMemory&) = delete;
  ~ExecutableMemory();

  /// The code; null where the system gives no such memory.
  void* code() const noexcept { return code_; }
  /// Bytes of the pages, which no other code shares.
  size_t bytes() const noexcept { return bytes_; }

 private:
  void* code_ = nullptr;
  size_t bytes_ = 0;
};

/// Notes a name for machine code where profilers look for it: for `perf` of Linux the file /tmp/perf-PID.map, on
/// Windows nowhere. Only the process that made the first note writes it, none of its children.
void name_machine_code(const ExecutableMemory& memory, const char* name);

}  // namespace rosin::platform
