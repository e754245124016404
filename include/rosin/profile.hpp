// Where the time of a program goes: kernels and calls with their sizes, as they ran while a function was called.
// For machine code see docs/performance.md (perf), for a GPU's counters the vendor's tools.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rosin/export.hpp>

namespace rosin {

/// Work of one kind: a kernel or a call of the same ops and sizes on one device, or a copy to it or from it.
struct ProfileEntry {
  std::string ops;     // "matmul"; of a fused kernel those that it computes: "add tanh multiply"; "copy to the host"
  std::string sizes;   // "(256, 784) (784, 128) Float32": operands of a call, elements of a kernel; "4096 bytes"
  std::string device;  // "CPU", "CUDA:0"
  int64_t runs = 0;
  double seconds = 0;  // of all runs
};

/// One run of it.
struct ProfileRun {
  int64_t entry = 0;  // its place among the entries
  int thread = 0;     // that asked for it; 0 is the one that asked first
  double begin = 0;   // seconds after the profile began
  double seconds = 0;
};

/// What profile() has seen.
struct Profile {
  double seconds = 0;                 // that the function took
  double planning = 0;                // of these: plans were made, kernels compiled
  std::vector<ProfileEntry> entries;  // those that took most first
  std::vector<ProfileRun> runs;       // in the order of their beginnings
};

/// A table of the entries that took most, within 80 columns. It begins with what took no part in them: planning, and
/// the rest, which is recording and the program's own work.
ROSIN_API std::string to_string(const Profile& profile);

/// Writes the runs as a file that chrome://tracing and ui.perfetto.dev show: devices one under the other, time from
/// left to right. It is replaced as a whole. Error (io): it cannot be written.
ROSIN_API void save_trace(const std::string& path, const Profile& profile);

namespace detail {

/// A profile from construction to finish(), or to the end of its life.
class ROSIN_API ProfileUnderWay {
 public:
  ProfileUnderWay();
  ~ProfileUnderWay();
  ProfileUnderWay(const ProfileUnderWay&) = delete;
  ProfileUnderWay& operator=(const ProfileUnderWay&) = delete;
  Profile finish();
};

}  // namespace detail

/// Calls f() and tells what ran meanwhile, of all threads. What f has recorded and nobody has read runs later and is no
/// part of it: read a result (`loss.item()`), as any measurement must. Steps that would run behind the thread that asks
/// for them are waited for. On a device each launch is given by itself, not as a part of a graph, between two events of
/// the device, which tell its time; the host waits at the end of each run. So a step takes longer than without, and
/// its parts tell more than the whole. Devices without such events (OpenCL) are waited for launch by launch, and
/// copies between devices and the host one by one, where the host's clock tells their time. Error (argument): another
/// profile is under way.
template <class F> Profile profile(F&& f) {
  detail::ProfileUnderWay under_way;
  std::forward<F>(f)();
  return under_way.finish();
}

}  // namespace rosin
