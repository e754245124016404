// Names of loops for who looks at machine code from outside: perf and debuggers, where the environment asks for it
// (ROSIN_PERF_MAP, ROSIN_JITDUMP, ROSIN_GDB). Read first: machine_loop.hpp. Read next: platform/code_names.hpp.
#pragma once

#include "cpu/machine_loop.hpp"
#include "platform/code_names.hpp"

namespace rosin::cpu {

/// Whether anybody is to be told. Asked once.
bool loops_have_names();

/// What a loop does, as far as a line of a profile has room: "rosin loop subtract multiply rows:add".
std::string name_of(const LoopText& text);

/// Tells all that are to be told. `entry` goes before the code. What cannot be done is said in one warning.
void name_code(const platform::NamedCode& code, platform::DebuggerEntry& entry);

}  // namespace rosin::cpu
