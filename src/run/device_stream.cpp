// See device_stream.hpp.
#include "run/device_stream.hpp"

#include <rosin/error.hpp>

#include "run/open_device.hpp"

namespace rosin {

DeviceStream::DeviceStream(OpenDevice& device, int position, StreamKind kind) noexcept
    : Stream(index_of(position, kind)), device_(device), kind_(kind) {}

DeviceStream::Turn::Turn(DeviceStream& stream) : lock_(stream.giving_) {
  OpenDevice& device = stream.device_;
  device.refuse_if_failed();
  if (!stream.queue_) device.check(device.functions.stream_create(device.device, &stream.queue_), "stream");
}

/// Calls the plug-in with the event behind a piece of work; ROSIN_OK where that is over and the event stands for later
/// work by now.
rosin_status DeviceStream::ask(uint64_t number, rosin_status (*how)(rosin_event*)) {
  Point& point = point_of(number);
  const std::lock_guard guard(point.lock);
  const rosin_status status = point.number == number ? how(point.event) : ROSIN_OK;
  if (status == ROSIN_OK) note_finished(ticket(number));
  return status;
}

void DeviceStream::wait(Ticket ticket) {
  if (is_over(ticket)) return;
  device_.check(ask(ticket.number(), device_.functions.event_sync), "synchronize");
}

bool DeviceStream::has_ended(Ticket ticket) {
  if (is_over(ticket)) return true;
  const rosin_status status = ask(ticket.number(), device_.functions.event_query);
  if (status != ROSIN_NOT_READY) device_.check(status, "synchronize");
  return status == ROSIN_OK;
}

/// The event of the ring that is next stands for work that is over: mostly one question for half the ring tells.
void DeviceStream::make_room(uint64_t number) {
  if (number <= ring_length || is_over(ticket(number - ring_length))) return;
  if (!has_ended(ticket(number - ring_length / 2))) wait(ticket(number - ring_length));
}

rosin_status DeviceStream::place(Point& point, uint64_t number) {
  const std::lock_guard guard(point.lock);
  if (!point.event) {
    if (const rosin_status status = device_.functions.event_create(device_.device, &point.event); status != ROSIN_OK) {
      return status;
    }
  }
  const rosin_status status = device_.functions.event_record(point.event, queue_);
  if (status == ROSIN_OK) point.number = number;
  return status;
}

/// False where no event stands behind the work.
bool DeviceStream::mark(uint64_t number) {
  try {
    make_room(number);
  } catch (const Error&) {
    return false;
  }
  return place(point_of(number), number) == ROSIN_OK;
}

Ticket DeviceStream::record() {
  const uint64_t number = given_.load(std::memory_order_relaxed) + 1;
  const bool marked = mark(number);
  if (!marked) device_.insist([&] { return device_.functions.stream_sync(queue_); }, "event");
  given_.store(number, std::memory_order_release);
  if (!marked) note_finished(ticket(number));
  return ticket(number);
}

/// A queue, which may be of another device, goes on behind a piece of this stream's work.
void DeviceStream::order_queue(rosin_stream* queue, uint64_t number, OpenDevice& of_queue) {
  Point& point = point_of(number);
  const std::lock_guard guard(point.lock);
  if (point.number == number) of_queue.check(of_queue.functions.stream_wait(queue, point.event), "stream");
}

void DeviceStream::order_behind(Ticket work) {
  if (work.stream() == index_ || is_over(work)) return;
  auto& other = static_cast<DeviceStream&>(Stream::of(work));
  const bool own = &other.device_ == &device_;
  uint64_t& behind = behind_[static_cast<size_t>(other.kind_)];
  if (own && work.number() <= behind) return;
  other.order_queue(queue_, work.number(), device_);
  if (own) behind = work.number();
}

void DeviceStream::order_to_read(const DeviceBlock& block) {
  order_behind(block.written_by.load(std::memory_order_relaxed));
}

void DeviceStream::order_to_write(const DeviceBlock& block) {
  for (int kind = 0; kind < stream_kinds; ++kind) {
    if (kind == static_cast<int>(kind_)) continue;  // its own work it follows anyway
    const Ticket use = block.uses[kind].load(std::memory_order_relaxed);
    if (!is_over(use)) order_behind(use);
  }
}

void DeviceStream::has_read(DeviceBlock& block, Ticket ticket) const noexcept {
  block.uses[static_cast<size_t>(kind_)].store(ticket, std::memory_order_relaxed);
}

void DeviceStream::has_written(DeviceBlock& block, Ticket ticket) const noexcept {
  has_read(block, ticket);
  block.written_by.store(ticket, std::memory_order_relaxed);
}

void DeviceStream::synchronize() {
  const std::lock_guard guard(giving_);
  if (!queue_) return;
  device_.refuse_if_failed();
  device_.check(device_.functions.stream_sync(queue_), "synchronize");
  note_finished(last());
}

}  // namespace rosin
