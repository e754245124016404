// See transfer.hpp.
#include "run/transfer.hpp"

#include <atomic>
#include <vector>

#include <rosin/host_vector.hpp>

#include "graph/node.hpp"
#include "run/device_table.hpp"
#include "run/profile.hpp"

namespace rosin {
namespace {

std::atomic<int64_t> bytes_in{0}, bytes_out{0};

rosin_place place_of(const Memory& memory) { return {static_cast<rosin_memory*>(memory.data), 0}; }

DeviceBlock& block_of(Memory& memory) { return static_cast<DeviceBlock&>(memory); }

void copy_in(OpenDevice& to, Memory& target, const void* source, size_t bytes) {
  const auto begin = RunTimer::Clock::now();
  const Ticket copied = to.upload(block_of(target), source, bytes);
  if (profile_is_under_way()) {
    to.stream(StreamKind::copy_in).wait(copied);
    add_copy_to_profile(to.name, "copy to the device", bytes, begin);
  }
  bytes_in.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void copy_out(OpenDevice& from, void* target, Memory& source, size_t bytes) {
  const auto begin = RunTimer::Clock::now();
  from.download(target, block_of(source), bytes);
  if (profile_is_under_way()) add_copy_to_profile(from.name, "copy to the host", bytes, begin);
  bytes_out.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

/// Straight from one device to another of the same back end; false where that is not offered.
bool copy_peer(OpenDevice& to, Memory& target, OpenDevice& from, Memory& source, size_t bytes) {
  if (&to.functions != &from.functions || !to.functions.copy_peer) return false;
  const auto begin = RunTimer::Clock::now();
  DeviceStream& stream = to.stream(StreamKind::copy_in);
  Ticket copied;
  {
    const DeviceStream::Turn turn(stream);
    stream.order_to_read(block_of(source));
    stream.order_to_write(block_of(target));
    const rosin_status status =
        to.functions.copy_peer(stream.queue(), place_of(target), from.device, place_of(source), bytes);
    if (status == ROSIN_UNSUPPORTED) return false;
    to.check(status, "copy between devices");
    copied = stream.record();
    stream.has_written(block_of(target), copied);
    block_of(target).made_by.store({}, std::memory_order_relaxed);
  }
  from.flags.look(block_of(source).made_by);
  from.flags.refuse_lost(block_of(source));
  stream.wait(copied);  // the source may be given away as soon as its last handle goes
  if (profile_is_under_way()) add_copy_to_profile(to.name, "copy from " + from.name, bytes, begin);
  return true;
}

}  // namespace

void copy_memory(Memory& target, Memory& source, size_t bytes) {
  DeviceTable& table = DeviceTable::instance();
  if (source.device == 0) return copy_in(table.open(target.device), target, source.data, bytes);
  OpenDevice& from = table.open(source.device);
  if (target.device == 0) return copy_out(from, target.data, source, bytes);
  OpenDevice& to = table.open(target.device);
  if (copy_peer(to, target, from, source, bytes)) return;
  std::vector<unsigned char> host = detail::host_vector<unsigned char>("move", static_cast<int64_t>(bytes));
  copy_out(from, host.data(), source, bytes);
  copy_in(to, target, host.data(), bytes);
}

CopiedBytes copied_bytes() noexcept {
  return {bytes_in.load(std::memory_order_relaxed), bytes_out.load(std::memory_order_relaxed)};
}

void count_copied(const CopiedBytes& more) noexcept {
  bytes_in.fetch_add(more.to_devices, std::memory_order_relaxed);
  bytes_out.fetch_add(more.from_devices, std::memory_order_relaxed);
}

void label_memory(const Array& x, const std::string& path) {
  if (x.node()->device == 0 || !x.node()->buffer) return;
  static_cast<DeviceBlock*>(x.node()->buffer)->label = path;
}

}  // namespace rosin
