// See cpu_stream.hpp.
#include "run/cpu_stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "base/pause.hpp"
#include "base/workers.hpp"
#include "graph/memory.hpp"
#include "platform/processes.hpp"
#include "platform/waiting.hpp"

namespace rosin {

// Never destroyed: its thread may still sleep on its members when the process exits.
CpuStream& CpuStream::instance() {
  static CpuStream* stream = new CpuStream;
  return *stream;
}

CpuStream::Poster& CpuStream::poster() {
  static thread_local Poster poster;
  return poster;
}

/// No run is in progress when the process forks or exits. A forked child has no thread here until it starts one.
CpuStream::CpuStream() : Stream(0) {
  platform::at_fork(
      [] {
        instance().lock_.lock();
        instance().spin_until(instance().number_);
      },
      [] { instance().lock_.unlock(); },
      [] {
        instance().started_ = false;
        instance().awake_.store(false, std::memory_order_relaxed);
        instance().lock_.unlock();
      });
  std::atexit([] { instance().spin_until(instance().posted_.load(std::memory_order_acquire)); });
}

/// What went behind gained nothing: it was waited for.
void CpuStream::Poster::disturbed() noexcept {
  const bool soon = calm < 3 * calm_wanted;
  calm_wanted = soon ? std::min(calm_wanted * 2, most_calm) : std::max(calm_wanted / 2, least_calm);
  calm = 0;
}

/// `run` gets the vectors of the last one for its own: the first that is posted must find some as well.
bool CpuStream::has_room_for(const Run& run) noexcept {
  try {
    run_.memory.reserve(run.memory.size());
    run_.scalars.reserve(run.scalars.size());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Ticket CpuStream::begin(const Run& run) noexcept {
  Poster& self = poster();
  if (worker_threads() < 2 || ++self.calm <= self.calm_wanted) return {};
  std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock || finished() != number_ || !start() || !has_room_for(run)) return {};
  if (!awake_.load(std::memory_order_acquire)) {
    wake();  // for the next one
    return {};
  }
  run_.plan = nullptr;
  lock.release();
  return ticket(posted_here_ = ++number_);
}

void CpuStream::post(Run& run) noexcept {
  std::swap(run_.memory, run.memory);
  std::swap(run_.scalars, run.scalars);
  run_.plan = std::move(run.plan);
  run_.prepared = run.prepared;
  run_.arena = run.arena;
  posted_.store(number_, std::memory_order_seq_cst);
  if (!awake_.load(std::memory_order_seq_cst)) wake();  // it fell asleep since
  lock_.unlock();
}

void CpuStream::finish_posted() {
  const uint64_t number = std::exchange(posted_here_, 0);
  if (!spin_until(number)) poster().disturbed();
  std::lock_guard lock(lock_);
  if (number != number_) return;  // another thread's run took its place
  run_.plan = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CpuStream::wait(Ticket ticket) {
  poster().disturbed();
  spin_until(ticket.number());
  if (ticket.number() == posted_here_) finish();
}

/// False where that took so long that the processors must be busy with something else.
bool CpuStream::spin_until(uint64_t number) const noexcept {
  const int most = patience_.load(std::memory_order_relaxed);
  int turn = 0;
  for (; finished() < number; turn = std::min(turn + 1, most)) {
    if (turn < most) pause_processor();
    else std::this_thread::yield();
  }
  return turn < most;
}

/// False where the system has no more threads.
bool CpuStream::start() noexcept {
  if (started_) return true;
  try {
    std::thread([this] { serve(); }).detach();
    started_ = true;
  } catch (const std::exception&) {}
  return started_;
}

void CpuStream::wake() noexcept {
  calls_.fetch_add(1, std::memory_order_seq_cst);
  platform::wake_one(calls_);
}

void CpuStream::serve() noexcept {
  for (uint64_t last = finished();;) {
    last = next_run(last);
    try {
      run_.prepared->run({run_.memory.data(), run_.scalars.data(), run_.arena});
    } catch (...) {
      error_ = std::current_exception();
    }
    finished_tickets[index_].store(ticket(last).word(), std::memory_order_release);  // nobody else writes it
  }
}

/// The number of the run after `last`, once it is posted.
uint64_t CpuStream::next_run(uint64_t last) noexcept {
  for (;;) {
    const uint32_t calls = calls_.load(std::memory_order_seq_cst);
    awake_.store(true, std::memory_order_seq_cst);
    for (int turn = 0; turn < patience_.load(std::memory_order_relaxed); ++turn) {
      const uint64_t posted = posted_.load(std::memory_order_acquire);
      if (posted != last) return posted;
      pause_processor();
    }
    awake_.store(false, std::memory_order_seq_cst);
    if (posted_.load(std::memory_order_seq_cst) == last) platform::wait_for_change(calls_, calls);
  }
}

}  // namespace rosin
