// DeviceStream: a stream of a device. A piece of work is what is given to it between two tickets: a run, a piece of a
// copy. Tickets are backed by a ring of events, one recorded for each piece; so the host is never further ahead of the
// device than the ring is long. Read first: stream.hpp. Read next: open_device.hpp (whose streams these are).
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include <rosin/backend.h>

#include "run/stream.hpp"

namespace rosin {

class OpenDevice;
struct DeviceBlock;

class DeviceStream final : public Stream {
 public:
  /// Made on the device when it is first used. `position`: of the device among all.
  DeviceStream(OpenDevice& device, int position, StreamKind kind) noexcept;

  /// Held while work is given to the stream. Error (backend): the device has failed before, or gives no stream.
  class Turn {
   public:
    explicit Turn(DeviceStream& stream);

   private:
    std::unique_lock<std::mutex> lock_;
  };

  // For who has the turn.

  /// The plug-in's; null before the first turn.
  rosin_stream* queue() const { return queue_; }
  /// Work given from now on starts after that work, which may be another stream's of any device of the back end.
  void order_behind(Ticket ticket);
  /// Work given from now on may read the block, or write it.
  void order_to_read(const DeviceBlock& block);
  void order_to_write(const DeviceBlock& block);
  /// The ticket of what was given since the last one. Where the device gives no event for it, waits for that work;
  /// Error (backend): neither can be had.
  Ticket record();
  /// What the block is told when work with this ticket uses it; others are ordered behind that.
  void has_read(DeviceBlock& block, Ticket ticket) const noexcept;
  void has_written(DeviceBlock& block, Ticket ticket) const noexcept;

  // For others.

  /// Error (backend): work of the device failed.
  void wait(Ticket ticket) override;
  /// Asks the device whether the work is over; never waits for it.
  bool has_ended(Ticket ticket);
  /// Waits for all work given so far. Error (backend): some of it failed.
  void synchronize();
  /// Of the work given last.
  Ticket last() const noexcept { return ticket(given_.load(std::memory_order_acquire)); }

 private:
  /// Who calls the plug-in with the event holds `lock`.
  struct Point {
    std::mutex lock;
    rosin_event* event = nullptr;
    uint64_t number = 0;  // of the piece of work that it stands behind
  };
  static constexpr size_t ring_length = 64;

  Point& point_of(uint64_t number) { return ring_[number % ring_length]; }
  void make_room(uint64_t number);
  bool mark(uint64_t number);
  rosin_status place(Point& point, uint64_t number);
  rosin_status ask(uint64_t number, rosin_status (*how)(rosin_event*));
  void order_queue(rosin_stream* queue, uint64_t number, OpenDevice& of_queue);

  OpenDevice& device_;
  const StreamKind kind_;
  std::mutex giving_;
  rosin_stream* queue_ = nullptr;
  std::atomic<uint64_t> given_{0};
  std::array<uint64_t, stream_kinds> behind_{};  // of the device's other streams: the last work this one waits for
  std::array<Point, ring_length> ring_;
};

}  // namespace rosin
