// Names of machine code that is made at run time, for programs that look at this process: perf of Linux, and debuggers
// that know gdb's interface for such code. Each call says why it could not be done; std::errc::function_not_supported
// where the system has no such thing. Files are written by the process that first asked for them, by none of its
// children, in which the calls do nothing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace rosin::platform {

/// Machine code of x86-64.
struct NamedCode {
  const void* code = nullptr;
  size_t bytes = 0;
  std::string name;  // one line
  /// How the caller's registers are found at each place of the code, for debuggers: call frame instructions of DWARF
  /// (section 6.4.2), from the state on that a call leaves, with factors of 1 (code) and -8 (data). At most 64 bytes.
  std::span<const unsigned char> frame;
};

/// Adds a line to /tmp/perf-PID.map, where `perf report` looks for names.
std::error_code add_to_perf_map(const NamedCode& code);

/// Adds the name and the code itself to jit-PID.dump in the folder that was the working one at the first call:
/// `perf inject --jit` makes files of it that `perf annotate` can read. An older file of that name is replaced.
std::error_code add_to_jitdump(const NamedCode& code);

/// What debuggers know of some machine code, until this object goes. That is before the memory of the code goes.
class DebuggerEntry {
 public:
  DebuggerEntry() = default;
  DebuggerEntry(const DebuggerEntry&) = delete;
  DebuggerEntry& operator=(const DebuggerEntry&) = delete;
  ~DebuggerEntry();

  /// Once for an object.
  std::error_code add(const NamedCode& code);

 private:
  struct Listed;
  Listed* listed_ = nullptr;
};

}  // namespace rosin::platform
