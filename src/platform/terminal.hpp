// Terminals that a program writes to.
#pragma once

#include <cstddef>
#include <cstdio>

namespace rosin::platform {

/// Whether people see what is written to the stream at once.
bool is_terminal(std::FILE* out);

/// How many characters fit on a line of the stream's terminal now; 0 where it is none or does not say.
std::size_t terminal_columns(std::FILE* out);

}  // namespace rosin::platform
