// LaunchClock: how long each launch of a run takes on its device, for a profile (run_timer.hpp).
#pragma once

#include <chrono>
#include <vector>

#include "run/open_device.hpp"

namespace rosin {

/// For who has the device's turn and gives launches one by one, with mark() behind each. What fails in it is no failure
/// of the run: then there are no times.
class LaunchClock {
 public:
  /// Begins before the first of so many launches. Where the device has no events that keep the time, each launch is
  /// waited for. Throws std::bad_alloc.
  LaunchClock(OpenDevice& device, size_t launches);
  ~LaunchClock();
  LaunchClock(const LaunchClock&) = delete;
  LaunchClock& operator=(const LaunchClock&) = delete;

  void mark() noexcept;
  /// Of each launch; nothing where that is not known. Waits for the last.
  std::vector<double> seconds();

 private:
  bool record() noexcept;

  OpenDevice& device_;
  bool works_ = true;
  std::vector<rosin_event*> events_;
  std::vector<std::chrono::steady_clock::time_point> times_;  // without events
};

}  // namespace rosin
