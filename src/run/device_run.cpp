// See device_run.hpp.
#include "run/device_run.hpp"

#include <utility>

#include <rosin/error.hpp>

namespace rosin {
namespace {

DeviceBlock& block_of(Memory* memory) { return *static_cast<DeviceBlock*>(memory); }

}  // namespace

DeviceRun::DeviceRun(OpenDevice& device, const plan::RunMemory& memory,
                     std::shared_ptr<const std::vector<std::string>> ops)
    : stream_(device.compute()), memory_(memory), turn_(stream_) {
  for (Memory* read : memory_.reads) stream_.order_to_read(block_of(read));
  for (Memory* written : memory_.writes) stream_.order_to_write(block_of(written));
  if (memory_.arena) stream_.order_to_write(block_of(memory_.arena));
  device.note(stream_.ticket(stream_.last().number() + 1), std::move(ops));
}

DeviceRun::~DeviceRun() {
  if (finished_) return;
  try {
    finish();
  } catch (const Error&) {  // then nothing is under way
  }
}

Ticket DeviceRun::finish() {
  finished_ = true;
  const Ticket ticket = stream_.record();
  tell(ticket);
  return ticket;
}

void DeviceRun::tell(Ticket ticket) const noexcept {
  for (Memory* read : memory_.reads) stream_.has_read(block_of(read), ticket);
  for (Memory* written : memory_.writes) stream_.has_written(block_of(written), ticket);
  if (memory_.arena) stream_.has_written(block_of(memory_.arena), ticket);
}

}  // namespace rosin
