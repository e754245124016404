// What the plug-in plays, as the environment says: how many devices, how large, which faults.
//
//   ROSIN_REFERENCE="devices=3,memory=64M,fp64=0"
//     devices=N       how many (1)
//     memory=N[KMG]   bytes of each device (2G)
//     fp64=0          devices without 64-bit floats
//     kind=gpu        also cpu, other (other)
//     functional=0    as if the driver were missing
//     vendor=1        offers matmul with bias and relu as a vendor call
//     vendor=2        offers matmul with all that backend.h says of it
//     vendor_rows=N   refuses calls of products with more than N rows when they are prepared
//     vendor_epilogues=N  refuses epilogues of products with more than N rows when they are prepared
//     delay=N         every piece of work takes N milliseconds more
//     fault=N         launch number N of a device, from 0, is a fault
//     hold=N          launch number N of a device, from 0, begins when a copy out has ended that was given after it; a
//                     fault where there is none for 20 seconds
//     alloc_fail=N    allocation number N of a device, from 0, fails as if memory were used up
//     keep=1          counts in rosin's cache how often a device was opened, and says so
//     first_page=1    devices that take the instructions of backend.h's first page alone
//     graph_fail=N    launch number N of graphs on a device, from 0, is refused
//     no_graph=STEP   that step of graphs is not offered: create, add, call (adding one), finish, update, launch
//     cut_edge=N      dependency number N that graphs of a device are given, from 0, is forgotten
//
// The plug-in is also built under the names of vendors' back ends, for tests; then ROSIN_REFERENCE_CUDA goes before
// ROSIN_REFERENCE, and CUDA_VISIBLE_DEVICES says which of the devices are seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/backend.h>

namespace rosin::reference {

/// What the plug-in is called and what its devices look like.
struct Role {
  const char* name;
  const char* device;  // the name of its devices, to which a number is added
  const char* capability;
  const char* variable;    // in the environment, before ROSIN_REFERENCE
  const char* visible[2];  // variables that select devices, the outer one first; or null
  int32_t kind;            // rosin_device_kind
};

/// Of this library; set when it is compiled.
extern const Role role;

struct Options {
  int32_t devices = 1;
  uint64_t memory = uint64_t{2} << 30;
  bool float64 = true;
  bool functional = true;
  int64_t vendor = 0;
  int64_t vendor_rows = -1;       // any number
  int64_t vendor_epilogues = -1;  // of any number of rows
  int64_t delay = 0;              // milliseconds
  int64_t fault = -1;             // the number of a launch
  int64_t hold = -1;              // the number of a launch
  int64_t alloc_fail = -1;        // the number of an allocation
  int64_t graph_fail = -1;        // the number of a graph's launch
  std::string no_graph;           // the step that is not offered
  int64_t cut_edge = -1;          // the number of a dependency
  bool keep = false;
  bool first_page = false;
  int32_t kind = ROSIN_DEVICE_OTHER;
  std::vector<int32_t> visible;  // hardware number of each device that is seen
  std::string hidden_by;         // why none is seen
};

/// Reads the environment. Throws Failure (failure.hpp), with ROSIN_INVALID where a value is malformed and
/// ROSIN_UNSUPPORTED for functional=0.
Options read_options();

}  // namespace rosin::reference
