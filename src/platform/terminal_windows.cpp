// terminal.hpp on Windows.
#include "platform/terminal.hpp"

#include <io.h>
#include <windows.h>

namespace rosin::platform {
namespace {

HANDLE handle_of(std::FILE* out) { return reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(out))); }

}  // namespace

/// (_isatty says yes to the null device too.)
bool is_terminal(std::FILE* out) {
  DWORD mode = 0;
  return GetConsoleMode(handle_of(out), &mode) != 0;
}

std::size_t terminal_columns(std::FILE* out) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (!GetConsoleScreenBufferInfo(handle_of(out), &info)) return 0;
  return static_cast<std::size_t>(info.srWindow.Right - info.srWindow.Left + 1);
}

}  // namespace rosin::platform
