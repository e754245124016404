// The CPU's stream: runs a small plan behind the thread that recorded it, while that thread records its next step. One
// run at a time; the memory it uses carries its ticket (graph/ticket.hpp), and who reads what it writes waits for it.
//
// Only updates of models come here (a loss that is read at once would gain nothing), of threads that have left alone
// what their last updates wrote. Runs that can fail, or that several threads share, stay with their thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "run/plan_cache.hpp"
#include "run/stream.hpp"

namespace rosin {

class CpuStream final : public Stream {
 public:
  static CpuStream& instance();

  /// A plan on its way, with all that it needs.
  struct Run {
    std::shared_ptr<Plan> plan;
    const plan::Prepared* prepared = nullptr;  // the plan's
    Memory* arena = nullptr;                   // has the run's ticket, and is in use until it is over
    std::vector<void*> memory;
    std::vector<ScalarValue> scalars;
  };

  /// The ticket of the run that the calling thread may post now, or a fresh one: it runs by itself then.
  Ticket begin(const Run& run) noexcept;
  /// Starts it; `run` gets vectors of a run before. The memory that it uses has the ticket by now.
  void post(Run& run) noexcept;

  /// Waits for what this thread has posted.
  static void finish() {
    if (posted_here_ != 0) instance().finish_posted();
  }
  /// Waits for a run whose result is read.
  void wait(Ticket ticket) override;

  /// For tests: how often a thread that waits looks before it sleeps or gives its processor away (4000 times); the
  /// calling thread counts its updates anew.
  void set_patience(int turns) {
    patience_.store(turns, std::memory_order_relaxed);
    poster() = {};
  }

 private:
  /// What a thread has done here.
  struct Poster {
    int calm = 0;                  // updates since it last waited for a result
    int calm_wanted = least_calm;  // of them, before its runs go behind: more where it soon waited after that

    void disturbed() noexcept;
  };
  static constexpr int least_calm = 16, most_calm = 1 << 14;
  static Poster& poster();
  static inline constinit thread_local uint64_t posted_here_ = 0;  // this thread's run that may be in progress

  CpuStream();
  void finish_posted();
  bool start() noexcept;
  bool has_room_for(const Run& run) noexcept;
  void wake() noexcept;
  void serve() noexcept;
  uint64_t next_run(uint64_t last) noexcept;
  bool spin_until(uint64_t number) const noexcept;

  std::mutex lock_;       // held from begin to post, and while `run_` is looked at
  Run run_;               // the last one posted
  uint64_t number_ = 0;   // its number, or that of the one that is begun
  bool started_ = false;  // there is a thread
  std::exception_ptr error_;
  alignas(64) std::atomic<uint64_t> posted_{0};
  std::atomic<bool> awake_{false};
  std::atomic<uint32_t> calls_{0};  // changes when the thread shall look
  std::atomic<int> patience_{4000};
};

}  // namespace rosin
