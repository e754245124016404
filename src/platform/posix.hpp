// What the files for POSIX share: descriptors, errors, and calls that a signal interrupts. Only they include this.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "platform/files.hpp"

namespace rosin::platform {

/// The result of a call that says -1 and EINTR when a signal came in between; it is made until it says something else.
template <class Call> auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// The error of the last call.
inline std::error_code last_error() { return {errno, std::generic_category()}; }

inline int descriptor(const OpenFile& file) { return static_cast<int>(file.handle()); }

/// Opens a file that is closed in programs that this process starts.
inline std::error_code open_file(const std::string& name, int flags, mode_t mode, OpenFile& file) {
  const int opened = uninterrupted([&] { return open(name.c_str(), flags | O_CLOEXEC, mode); });
  if (opened < 0) return last_error();
  file = OpenFile(opened);
  return {};
}

}  // namespace rosin::platform
