// Whether a worker that waits for news spins before it sleeps: it does not where threads wait for processors, which it
// would keep from them.
#pragma once

#include <algorithm>
#include <chrono>

namespace rosin {

/// Of one worker.
class Spinning {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// Whether the next wait may begin with spinning, as far as this process knows of `runnable` threads that want one of
  /// `processors`.
  bool may_begin(int runnable, int processors) noexcept {
    if (runnable > processors) return false;
    if (rest_ == 0) return true;
    --rest_;
    return false;
  }

  /// A spin, of some twenty microseconds at most, took so long by the clock: where it took far longer, others had the
  /// processor meanwhile, the thread for one that the worker works for, so that the next waits sleep at once; more of
  /// them each time that it comes again. Who wakes is given a free processor, where one is.
  void took(Duration time) noexcept {
    if (time < interrupted) {
      next_rest_ = least_rest;
      return;
    }
    rest_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, most_rest);
  }

 private:
  static constexpr std::chrono::milliseconds interrupted{1};
  static constexpr int least_rest = 16, most_rest = 1024;  // waits

  int rest_ = 0, next_rest_ = least_rest;
};

}  // namespace rosin
