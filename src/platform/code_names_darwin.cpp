// code_names.hpp on macOS, which has neither perf nor ELF.
#include "platform/code_names.hpp"

namespace rosin::platform {

std::error_code add_to_perf_map(const NamedCode&) { return std::make_error_code(std::errc::function_not_supported); }
std::error_code add_to_jitdump(const NamedCode&) { return std::make_error_code(std::errc::function_not_supported); }

DebuggerEntry::~DebuggerEntry() = default;
std::error_code DebuggerEntry::add(const NamedCode&) { return std::make_error_code(std::errc::function_not_supported); }

}  // namespace rosin::platform
