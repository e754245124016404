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

}  // namespace rosin::platform
