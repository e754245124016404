// What a machine gives at best, beside which measured steps are read. Read next: facts.cpp.
#pragma once

#include <rosin/diagnostics.hpp>

#include <cstdint>

namespace gpu_check {

/// In seconds; all 0 where the device has no graphs.
struct GraphTimes {
  double launch = 0;  // the host's for a launch
  double update = 0;  // the host's for new arguments of a node
  double node = 0;    // from node to node on the device, the launch included
};

struct Facts {
  double copy_rate = 0;  // bytes a second, read and written
  GraphTimes graph;
};

/// Error (std::runtime_error): the device fails.
Facts facts_of(const rosin::BackendReport& report, int id, uint64_t copied_bytes);

}  // namespace gpu_check
