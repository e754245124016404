// What the conformance program of transports is built from: the transport behind its table, calls in short form, and
// the count of what passed. Read first: rosin/comm.h. Read next: main.cpp, values.cpp, faults.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rosin/comm.h>

#include "device.hpp"

namespace comm_test {

using Bytes = std::vector<unsigned char>;

/// A transport that has joined, and this process' place.
struct Rig {
  const rosin_comm_transport* functions = nullptr;
  rosin_comm* comm = nullptr;
  int rank = 0, ranks = 1;
  int passed = 0, failed = 0;
  std::unique_ptr<Device> device;  // that collectives are done on; null: in memory of the host
  bool with_stream = true;         // as work of a stream
  bool follows = false;            // what is run follows what was run last
  double patience = 30;            // seconds to wait for ranks that do wrong
  bool in_common = false;          // what is run receives in memory in common

  /// Loads the file and joins; false after a complaint.
  bool open(const char* path, double timeout);
  /// From now on collectives are done on a device of this plug-in, as far as the transport takes them; false after a
  /// complaint.
  bool use_device(const char* plugin);
  /// Memory in common, or null where this transport has none, which it says on every rank.
  char* common(uint64_t bytes);
  /// One collective; 60 s for others to come.
  rosin_comm_status run(int kind, int type, int operation, int root, const std::vector<rosin_comm_part>& parts,
                        double timeout = 60, const char* name = "test");
  /// Counts a check; says what failed, once for each of the first few.
  void check(bool good, const std::string& what);
  void expect_ok(rosin_comm_status status, const std::string& what);
  void say(const std::string& line) const;
};

const char* status_name(rosin_comm_status status);

/// All kinds, types, operations, sizes, parts and roots.
void check_values(Rig& rig);
/// What the contract says of wrong arguments, of the place, and that the same values give the same bits.
void check_rules(Rig& rig);
void check_bits(Rig& rig);
/// Sums in memory in common, where there is some.
void check_common(Rig& rig);
/// What ranks learn when one of them does wrong; gives the exit status.
int play_fault(Rig& rig, const std::string& name);

}  // namespace comm_test
