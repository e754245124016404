// Streams: a thread each, which takes work from a queue in the order in which it was given; events count that work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
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
  void give(rosin::reference::Work work) { give({std::move(work), false}); }
  /// The same, on a device that has failed too, and without delay; it throws nothing.
  void give_always(rosin::reference::Work work) { give({std::move(work), true}); }
  /// The number that `progress` reaches when all work given so far is done.
  uint64_t given() const { return given_; }
  void wait() { progress->wait(given_); }

 private:
  struct Piece {
    rosin::reference::Work work;
    bool always = false;
  };
  void give(Piece piece);
  void work();
  void run(const Piece& piece);

  uint64_t given_ = 0;  // of the calling side
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Piece> queue_;
  bool ends_ = false;
  std::thread thread_;
};

/// When an event was reached. Outlives the event where a stream is on its way.
struct EventClock {
  std::chrono::steady_clock::time_point time;
};

struct rosin_event {
  rosin_device* device = nullptr;
  std::shared_ptr<rosin::reference::Progress> progress;  // null before the first record
  uint64_t number = 0;
  std::shared_ptr<EventClock> clock;  // of events that keep the time
};
