// What a back end has, asked for without risk: its plug-in is probed in a child process first, and one that crashes
// there is noted, so that the library passes it by. Read first: child.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rosin/diagnostics.hpp>

namespace command {

/// Probes the files of a back end in the order of the search, up to the first that is a plug-in, and notes the results.
/// Gives those that crashed, with how.
std::vector<rosin::TriedFile> probe_files(std::string_view backend, double seconds);

struct Survey {
  rosin::BackendReport report;
  bool crashed = false;  // one of its files did
};

/// Probes and then asks the back end. UsageError: there is no such back end.
Survey survey(const std::string& backend, double seconds);

/// Whether one of the files that were tried is used.
bool has_plugin(const rosin::BackendReport& report);
/// "CUDA:0", or "CPU".
std::string name_of(const rosin::Device& device);

}  // namespace command
