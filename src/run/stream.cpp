// See stream.hpp.
#include "run/stream.hpp"

namespace rosin {
namespace {

constinit std::atomic<Stream*> streams[most_streams] = {};

}  // namespace

Stream::Stream(unsigned index) noexcept : index_(index) {
  note_finished(ticket(0));
  streams[index].store(this, std::memory_order_release);
}

Stream& Stream::of(Ticket ticket) noexcept { return *streams[ticket.stream()].load(std::memory_order_acquire); }

void Stream::note_finished(Ticket ticket) noexcept {
  std::atomic<uint64_t>& finished = finished_tickets[index_];
  uint64_t before = finished.load(std::memory_order_relaxed);
  while (before < ticket.word() && !finished.compare_exchange_weak(before, ticket.word(), std::memory_order_acq_rel)) {}
}

}  // namespace rosin
