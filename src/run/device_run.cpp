// See device_run.hpp.
#include "run/device_run.hpp"

#include <utility>

#include <rosin/error.hpp>

namespace rosin {
namespace {

DeviceBlock& block_of(Memory* memory) { return *static_cast<DeviceBlock*>(memory); }

}  // namespace

DeviceRun::DeviceRun(OpenDevice& device, const plan::RunMemory& memory,
                     std::shared_ptr<const std::vector<std::string>> ops, size_t marks)
    : device_(device), stream_(device.compute()), memory_(memory), turn_(stream_) {
  for (Memory* read : memory_.reads) {
    device_.flags.refuse_lost(block_of(read));
    stream_.order_to_read(block_of(read));
  }
  for (Memory* made : memory_.makes) stream_.order_to_write(block_of(made));
  for (Memory* old : memory_.overwrites) stream_.order_to_write(block_of(old));
  if (memory_.arena) stream_.order_to_write(block_of(memory_.arena));
  device.note(stream_.ticket(stream_.last().number() + marks + 1), std::move(ops));
}

DeviceRun::~DeviceRun() {
  if (finished_) return;
  try {
    finish();
  } catch (const Error&) {  // then nothing is under way
  }
}

void DeviceRun::mark(std::span<const DeviceMarks::Written> written) {
  if (written.empty()) return;
  const Ticket ticket = stream_.record();
  for (const DeviceMarks::Written& each : written) early_.push_back({each.memory, ticket});
}

Ticket DeviceRun::finish() {
  finished_ = true;
  const Ticket ticket = stream_.record();
  tell(ticket);
  return ticket;
}

void DeviceRun::tell(Ticket ticket) const noexcept {
  for (Memory* read : memory_.reads) stream_.has_read(block_of(read), ticket);
  for (Memory* made : memory_.makes) {
    stream_.has_written(block_of(made), ticket);
    block_of(made).made_by.store(ticket, std::memory_order_relaxed);
  }
  for (Memory* old : memory_.overwrites) stream_.has_written(block_of(old), ticket);  // it keeps its values, or is good
  if (memory_.arena) stream_.has_written(block_of(memory_.arena), ticket);
  for (const Early& early : early_)
    block_of(early.memory).written_by.store(early.written_by, std::memory_order_relaxed);
}

}  // namespace rosin
