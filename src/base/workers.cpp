// Worker threads: workers spin a little for news where there are processors for that, then sleep. There is one job at a
// time. Each thread has a range of its chunks and takes those first, then what is left of others': so it mostly meets
// what it has written itself for the job before, in its own cache. A 64-bit atomic holds a range's generation and its
// next chunk, so that a late worker of an old job can never take a chunk of a new one.
#include "base/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/environment.hpp"
#include "base/pause.hpp"
#include "base/spinning.hpp"
#include "platform/processes.hpp"
#include "platform/processor.hpp"
#include "platform/waiting.hpp"

namespace rosin {
namespace {

constexpr uint64_t chunk_bits = 40;
constexpr uint64_t chunk_mask = (uint64_t{1} << chunk_bits) - 1;
constexpr int spin_turns = 4000;  // about 20 us of pauses
constexpr int64_t most_threads = 1024;
constexpr int most_ranges = 64;  // further threads begin with those of others

/// ROSIN_NUM_THREADS, or what affinity and cgroup allow.
int default_threads() {
  const int64_t asked = environment_number(Setting::num_threads, 1).value_or(0);
  return asked > 0 ? static_cast<int>(std::min<int64_t>(asked, most_threads)) : platform::available_threads();
}

class Workers {
 public:
  // Never destroyed: workers may still sleep on its members when the process exits.
  static Workers& instance() {
    static Workers* workers = new Workers;
    return *workers;
  }

  int threads() { return threads_.load(std::memory_order_relaxed); }

  void set_threads(int threads) {
    std::unique_lock lock(owner_, std::defer_lock);
    if (!inside_) lock.lock();  // a chunk may call this too: its own job holds the lock
    threads_.store(threads > 0 ? threads : default_threads(), std::memory_order_relaxed);
  }

  void run(int64_t chunks, void (*body)(void*, int64_t), void* context) {
    if (chunks <= 1 || threads() == 1 || inside_) return run_alone(chunks, body, context);
    if (!owner_.try_lock()) {
      const Besides counted(besides_);
      return run_alone(chunks, body, context);
    }
    std::lock_guard lock(owner_, std::adopt_lock);
    start_workers();
    inside_ = true;
    publish(chunks, body, context);
    work(0);
    for (int turn = 0; done_.load(std::memory_order_acquire) != chunks; ++turn) wait_a_little(turn);
    inside_ = false;
    if (failed_.load(std::memory_order_relaxed)) {
      std::exception_ptr error = std::move(error_);
      error_ = nullptr;
      std::rethrow_exception(error);
    }
  }

 private:
  /// A thread that runs chunks while the workers serve another one.
  class Besides {
   public:
    explicit Besides(std::atomic<int>& count) : count_(count) { count_.fetch_add(1, std::memory_order_relaxed); }
    Besides(const Besides&) = delete;
    Besides& operator=(const Besides&) = delete;
    ~Besides() { count_.fetch_sub(1, std::memory_order_relaxed); }

   private:
    std::atomic<int>& count_;
  };

  static void run_alone(int64_t chunks, void (*body)(void*, int64_t), void* context) {
    for (int64_t i = 0; i < chunks; ++i) body(context, i);
  }

  Workers() : threads_(default_threads()) {
    platform::at_fork(nullptr, nullptr, [] { instance().forget_workers(); });
  }

  void forget_workers() noexcept {
    // In a forked child no worker exists: new ones start with the next job. A job that another thread of the parent
    // had in progress is nobody's here, so no new worker may take its chunks.
    workers_ = 0;
    inside_ = false;
    close_ranges(most_ranges);
    failed_.store(false, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
    besides_.store(0, std::memory_order_relaxed);
    new (&owner_) std::mutex;
  }

  /// Where the system has no more threads, fewer take part.
  void start_workers() noexcept {
    try {
      for (; workers_ < threads() - 1; ++workers_) {
        const int index = workers_;
        std::thread([this, index] { serve(index); }).detach();
      }
    } catch (const std::exception&) {}
  }

  /// Gives the first ranges a new generation, and no chunk: a worker that still looks at the last job must not take its
  /// last ticket for one of the next. (Ranges behind them have no chunk left.)
  uint64_t close_ranges(int count) noexcept {
    const uint64_t generation = (ranges_[0].ticket.load(std::memory_order_relaxed) >> chunk_bits) + 1;
    for (int i = 0; i < count; ++i) {
      ranges_[i].ticket.store(generation << chunk_bits | chunk_mask, std::memory_order_relaxed);
    }
    return generation;
  }

  void publish(int64_t chunks, void (*body)(void*, int64_t), void* context) {
    const int count = std::min(threads(), most_ranges);
    const uint64_t generation = close_ranges(count);
    body_ = body;
    context_ = context;
    failed_.store(false, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    count_.store(count, std::memory_order_relaxed);
    int64_t begin = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t end = chunks * (i + 1) / count;
      ranges_[i].end.store(end, std::memory_order_release);  // who sees it sees the closed ticket
      ranges_[i].ticket.store(generation << chunk_bits | static_cast<uint64_t>(begin), std::memory_order_release);
      begin = end;
    }
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) platform::wake_all(epoch_);
  }

  /// Takes chunks of one job until none is left: those of thread `index`, then the others'.
  void work(int index) noexcept {
    const int count = count_.load(std::memory_order_acquire);
    const uint64_t generation = ranges_[0].ticket.load(std::memory_order_acquire) >> chunk_bits;
    for (int i = 0; i < count; ++i) take(ranges_[(index + i) % count], generation);
  }

  struct Range;

  void take(Range& range, uint64_t generation) noexcept {
    uint64_t ticket = range.ticket.load(std::memory_order_acquire);
    while (ticket >> chunk_bits == generation &&
           static_cast<int64_t>(ticket & chunk_mask) < range.end.load(std::memory_order_acquire)) {
      if (!range.ticket.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      run_chunk(static_cast<int64_t>(ticket & chunk_mask));
      ticket = range.ticket.load(std::memory_order_acquire);
    }
  }

  void run_chunk(int64_t chunk) noexcept {
    try {
      body_(context_, chunk);
    } catch (...) {
      std::lock_guard lock(error_lock_);
      if (!failed_.exchange(true, std::memory_order_acq_rel) || chunk < error_chunk_) {
        error_ = std::current_exception();
        error_chunk_ = chunk;
      }
    }
    done_.fetch_add(1, std::memory_order_acq_rel);
  }

  void serve(int index) noexcept {
    inside_ = true;
    uint32_t seen = 0;
    Spinning spinning;
    for (;;) {
      seen = wait_for_news(seen, spinning);
      if (index < threads() - 1) work(index + 1);
    }
  }

  uint32_t wait_for_news(uint32_t seen, Spinning& spinning) noexcept {
    if (spinning.may_begin(threads() + besides_.load(std::memory_order_relaxed), processors_)) {
      const auto begin = std::chrono::steady_clock::now();
      uint32_t now = seen;
      for (int turn = 0; turn < spin_turns && now == seen; ++turn) {
        pause_processor();
        now = epoch_.load(std::memory_order_acquire);
      }
      spinning.took(std::chrono::steady_clock::now() - begin);
      if (now != seen) return now;
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    platform::wait_for_change(epoch_, seen);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return epoch_.load(std::memory_order_acquire);
  }

  static void wait_a_little(int turn) noexcept {
    if (turn < spin_turns) pause_processor();
    else std::this_thread::yield();
  }

  static inline thread_local bool inside_ = false;

  std::mutex owner_;  // held by the thread whose job the workers serve
  int workers_ = 0;
  std::atomic<int> threads_;
  const int processors_ = platform::available_threads();
  std::atomic<int> besides_{0};
  std::mutex error_lock_;
  std::exception_ptr error_;  // of the lowest chunk that failed
  int64_t error_chunk_ = 0;
  void (*body_)(void*, int64_t) = nullptr;
  void* context_ = nullptr;
  struct alignas(64) Range {
    std::atomic<uint64_t> ticket{0};
    std::atomic<int64_t> end{0};
  };
  Range ranges_[most_ranges];
  std::atomic<int> count_{1};  // of ranges that the job has
  alignas(64) std::atomic<int64_t> done_{0};
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace

void parallel(int64_t chunks, void (*body)(void*, int64_t), void* context) {
  Workers::instance().run(chunks, body, context);
}
void set_worker_threads(int threads) { Workers::instance().set_threads(threads); }
int worker_threads() { return Workers::instance().threads(); }

}  // namespace rosin
