// Streams: a thread each, which takes work from a queue in the order in which it was given; events count that work.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device.hpp"

namespace rosin::reference {

using Work = std::function<void()>;

/// How far a stream is. Outlives the stream where events look at it.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t done = 0;

  void wait(uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return done >= number; });
  }
  bool reached(uint64_t number) {
    const std::lock_guard lock(mutex);
    return done >= number;
  }
};

}  // namespace rosin::reference

struct rosin_stream {
  explicit rosin_stream(rosin_device& owner);
  ~rosin_stream();
  rosin_stream(const rosin_stream&) = delete;
  rosin_stream& operator=(const rosin_stream&) = delete;

  rosin_device& device;
  const std::shared_ptr<rosin::reference::Progress> progress = std::make_shared<rosin::reference::Progress>();

  /// Runs `work` after all that was given before. A Failure or Fault that it throws ends the device.
  void give(rosin::reference::Work work);
  /// The number that `progress` reaches when all work given so far is done.
  uint64_t given() const { return given_; }
  void wait() { progress->wait(given_); }

 private:
  void work();
  void run(const rosin::reference::Work& work);

  uint64_t given_ = 0;  // of the calling side
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<rosin::reference::Work> queue_;
  bool ends_ = false;
  std::thread thread_;
};

struct rosin_event {
  rosin_device* device = nullptr;
  std::shared_ptr<rosin::reference::Progress> progress;  // null before the first record
  uint64_t number = 0;
};
