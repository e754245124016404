// What probes of plug-ins found: a file that crashed its probe is not loaded by programs until it has changed or a
// later probe went well. note_probe() is public: include/rosin/diagnostics.hpp. Read next: plugin.hpp.
#pragma once

#include <string>

namespace rosin {

/// Whether the last probe of this very file (path, size, time of change) ended in a crash.
bool crashed_in_last_probe(const std::string& path);

}  // namespace rosin
