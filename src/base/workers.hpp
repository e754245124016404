// The worker threads: one per process. Work is a number of chunks; idle workers and the caller take them one by one.
// Nobody waits for a worker that has not started: completion counts chunks, not workers.
#pragma once

#include <cstdint>

namespace rosin {

/// Runs body(context, chunk) for every chunk in [0, chunks), on the calling thread and idle workers; returns when all
/// are done. When chunks throw, the exception of the lowest of them is thrown again here; chunks after it may have run
/// or not. Re-entrant calls and calls while another thread uses the workers run on the calling thread alone.
void parallel(int64_t chunks, void (*body)(void* context, int64_t chunk), void* context);

template <class F> void parallel_for(int64_t chunks, F&& body) {
  parallel(
      chunks, [](void* f, int64_t chunk) { (*static_cast<F*>(f))(chunk); }, &body);
}

/// Threads that take part, the caller's included. 0 = ROSIN_NUM_THREADS, or from affinity and cgroup.
void set_worker_threads(int threads);
int worker_threads();

}  // namespace rosin
