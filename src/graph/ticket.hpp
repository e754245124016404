// Ticket: one piece of work of one stream, by which whoever needs its result waits for it and for nothing else. Memory
// carries tickets; what streams are, and how they wait, is none of this room's business.
// Read next: memory.hpp, run/stream.hpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace rosin {

/// The pieces of work of a stream are numbered from 1. A fresh ticket stands for no work, which is over.
class Ticket {
 public:
  constexpr Ticket() = default;
  constexpr Ticket(unsigned stream, uint64_t number) : word_(uint64_t{stream} << number_bits | number) {}

  constexpr unsigned stream() const { return static_cast<unsigned>(word_ >> number_bits); }
  constexpr uint64_t number() const { return word_ & ((uint64_t{1} << number_bits) - 1); }
  /// Tickets of one stream are in the order of its work.
  constexpr uint64_t word() const { return word_; }
  constexpr bool operator==(const Ticket&) const = default;

 private:
  static constexpr int number_bits = 48;
  uint64_t word_ = 0;
};

inline constexpr unsigned most_streams = 2048;

/// Of each stream the ticket of the last work that is known to be over, as a word; the stream writes it.
inline constinit std::atomic<uint64_t> finished_tickets[most_streams] = {};

/// Whether the work is known to be over: never waits, and asks no device.
inline bool is_over(Ticket ticket) noexcept {
  return ticket.word() <= finished_tickets[ticket.stream()].load(std::memory_order_acquire);
}
inline bool is_over(const std::atomic<Ticket>& ticket) noexcept {
  return is_over(ticket.load(std::memory_order_relaxed));
}

}  // namespace rosin
