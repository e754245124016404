// The checks, by part of backend.h. conformance.cpp runs them; a new one is a line in the list of its file.
#pragma once

#include <span>
#include <string>

#include "rig.hpp"

namespace rosin::conformance {

struct Check {
  const char* name;
  void (*run)(Rig&);
};

struct Part {
  const char* name;
  std::span<const Check> checks;
};

extern const Part device_part;        // device_checks.cpp: the table, infos, errors, blocks
extern const Part memory_part;        // memory_checks.cpp: copies, what memory holds
extern const Part streams_part;       // stream_checks.cpp: streams, events, threads
extern const Part programs_part;      // program_checks.cpp: compile, load, kernel
extern const Part kernels_part;       // kernel_checks.cpp: launches, control flow, shared memory
extern const Part later_part;         // later_checks.cpp: instructions that came after the first page
extern const Part operations_part;    // operation_checks.cpp: every operation for every type
extern const Part elements_part;      // element_checks.cpp: loads, stores and rounding for every element type
extern const Part extras_part;        // extra_checks.cpp: what is optional, but calls and graphs
extern const Part services_part;      // service_checks.cpp: memory, streams and events of other kinds
extern const Part calls_part;         // call_checks.cpp: vendor calls
extern const Part convolutions_part;  // convolution_checks.cpp: those that are convolutions
extern const Part attention_part;     // attention_checks.cpp: those that are attention
extern const Part recurrent_part;     // recurrent_checks.cpp: those that are recurrent layers
extern const Part graphs_part;        // graph_checks.cpp

}  // namespace rosin::conformance
