// Stream: work that runs in the order in which it was given, beside the thread that gives it. Each piece has a ticket
// (graph/ticket.hpp): memory carries the tickets of what uses it, and who needs a result waits for its ticket alone.
// Read next: cpu_stream.hpp (the thread behind), device_stream.hpp (those of devices).
#pragma once

#include "graph/ticket.hpp"

namespace rosin {

/// What a stream of a device is for. Work on one waits for another by ticket only.
enum class StreamKind { compute, copy_in, copy_out, communication };
inline constexpr int stream_kinds = 4;

/// Lives until the process ends, as tickets do.
class Stream {
 public:
  /// `index`: below most_streams, of no other stream.
  explicit Stream(unsigned index) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The CPU's is 0; those of the device at a position lie beside each other.
  static constexpr unsigned index_of(int position, StreamKind kind) {
    return static_cast<unsigned>(position) * 8 + static_cast<unsigned>(kind);
  }
  /// The stream of a ticket that stands for work.
  static Stream& of(Ticket ticket) noexcept;

  /// Waits until the work is over; a ticket of this stream. Any thread, which gives no work to any stream meanwhile.
  virtual void wait(Ticket ticket) = 0;

  Ticket ticket(uint64_t number) const noexcept { return {index_, number}; }
  /// How many pieces of work are known to be over.
  uint64_t finished() const noexcept {
    return Ticket(0, finished_tickets[index_].load(std::memory_order_acquire)).number();
  }

 protected:
  ~Stream() = default;
  /// All up to this one are over. Never goes back, whoever says so.
  void note_finished(Ticket ticket) noexcept;

  const unsigned index_;
};

}  // namespace rosin
