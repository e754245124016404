// terminal.hpp on POSIX.
#include "platform/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace rosin::platform {

bool is_terminal(std::FILE* out) { return isatty(fileno(out)) == 1; }

std::size_t terminal_columns(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace rosin::platform
