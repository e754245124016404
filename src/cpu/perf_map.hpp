// Names of machine code that is written at run time, for `perf`: ROSIN_PERF_MAP=1.
#pragma once

#include <cstddef>
#include <string>

namespace rosin::cpu {

/// Adds a line to /tmp/perf-PID.map, which `perf report` reads. Nothing where that is not asked for, or where the file
/// cannot be written: a file of another user, or a link, is left alone.
/// Source: Linux, tools/perf/Documentation/jit-interface.txt.
void tell_perf(const void* code, size_t bytes, const std::string& name);

}  // namespace rosin::cpu
