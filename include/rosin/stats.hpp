// Counters of the library: what was planned, found in caches, and held in memory.
#pragma once

#include <cstdint>

#include <rosin/export.hpp>

namespace rosin {

/// Counters since the start of the process (or reset_stats), and sizes now.
struct Stats {
  int64_t evaluations = 0;     // runs of a plan
  int64_t structures = 0;      // structures compiled (a miss of the first level)
  int64_t layouts = 0;         // structures laid out for sizes (a miss of the second level)
  int64_t planning_ns = 0;     // nanoseconds that plans, their layouts and their code took, on the threads that waited
  int64_t plan_hits = 0;       // evaluations that found both levels
  int64_t evicted = 0;         // plans dropped to stay inside the budget
  int64_t kernels = 0;         // fused kernels launched
  int64_t calls = 0;           // opaque calls launched (matmul, convolution, ...)
  int64_t read_bytes = 0;      // of memory that kernels and calls read, each operand once a kernel
  int64_t written_bytes = 0;   // that they wrote
  int64_t kept_bytes = 0;      // of this, what stood there when a backward pass began, and was read by it
  int64_t allocations = 0;     // blocks of memory that the system and devices gave; a steady step needs none
  int64_t launches = 0;        // kernels launched on devices of plug-ins; a call may be several
  int64_t graph_launches = 0;  // runs on devices that were one launch of a graph, with all launches of the run in it
  int64_t graph_updates = 0;   // nodes of graphs that got other memory or numbers before such a launch
  int64_t loose_calls = 0;     // calls of libraries that a graph did not take: runs with them are launched one by one
  int64_t library_calls = 0;   // of these launches: calls that a vendor's library computes
  int64_t refused_calls = 0;   // calls that a library refused for their sizes: kernels compute them
  int64_t to_devices = 0;      // bytes of arrays copied from the host to devices
  int64_t from_devices = 0;    // bytes of arrays copied from devices to the host
  int64_t cache_bytes = 0;     // plans, now; the memory that they run in is not theirs
  int64_t live_bytes = 0;      // memory of arrays on the CPU, now
  int64_t packed_bytes = 0;    // of this: arrays once more in the order in which engines read them
  int64_t pooled_bytes = 0;    // memory of the CPU kept for arrays and runs to come, now
};

ROSIN_API Stats stats();
ROSIN_API void reset_stats();

/// Bytes that cached plans may take, default 256 MiB: those used longest ago go first, the two used last stay. The
/// memory that runs work in is no part of it (set_arena_limit in device.hpp).
ROSIN_API void set_plan_cache_limit(int64_t bytes);
/// Off: every evaluation plans anew (for tests). Default on.
ROSIN_API void set_plan_cache(bool on);
/// Bytes that weights may take once more on the CPU, packed as its engines read them, default a quarter of the
/// machine's memory; 0: none are kept. They are packed when a second run reads them unchanged, and go when they change
/// or end.
/// Error (argument): a limit below 0.
ROSIN_API void set_packed_limit(int64_t bytes);
/// Gives pooled memory, packed weights and cached plans back to the system.
ROSIN_API void trim();

/// Threads that compute; 0 = from affinity and cgroup (the default, or ROSIN_NUM_THREADS). Results do not depend on it.
/// With two or more, updates of small models run behind the thread that asks for them (docs/performance.md).
ROSIN_API void set_num_threads(int threads);
ROSIN_API int num_threads();

}  // namespace rosin
