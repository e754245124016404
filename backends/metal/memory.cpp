// Blocks of memory and copies. Where host and device share one memory, the host copies straight into a block and out of
// it once the stream has come so far; elsewhere blocks are the device's alone, and copies go over a block that both
// see. Pinned memory is such a block. Read next: bytes.cpp.
#include <cstring>
#include <iterator>
#include <memory>

#include "metal/metal.hpp"

namespace rosin::metal {
namespace {

Owned block_of(const rosin_device& device, uint64_t bytes, uint64_t options) {
  if (bytes == 0) throw Failure{ROSIN_INVALID, "a block has at least one byte"};
  const rosin_device_info& info = device.facts->info;
  // Metal gives more than the device has, and then work fails.
  const uint64_t used = send::allocated_size(device.id());
  const bool fits = bytes <= info.largest_allocation && bytes <= info.memory && used <= info.memory - bytes;
  Owned made;
  if (fits) made = Owned::given(send::new_buffer(device.id(), bytes, options));
  if (made) return made;
  throw Failure{ROSIN_OUT_OF_MEMORY, "no block of " + std::to_string(bytes) + " bytes: " + std::to_string(used) +
                                         " of " + std::to_string(info.memory) + " are in use, and a block has " +
                                         std::to_string(info.largest_allocation) + " at most"};
}

/// The part of a pinned block that this host memory is; none where it is not pinned.
Part pinned_part(rosin_device& device, const void* memory, uint64_t bytes) {
  const auto* first = static_cast<const char*>(memory);
  const std::lock_guard guard(device.lock);
  const auto next = device.pinned.upper_bound(first);
  if (next == device.pinned.begin()) return {};
  const auto& [begin, block] = *std::prev(next);
  const auto offset = static_cast<uint64_t>(first - begin);
  if (offset > block.second || bytes > block.second - offset) return {};
  return {block.first.get(), offset};
}

}  // namespace

Owned host_block(const rosin_device& device, uint64_t bytes) { return block_of(device, bytes, storage_shared); }

Part part_of(const rosin_place& place, uint64_t bytes) {
  if (!place.memory || place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset)
    throw Failure{ROSIN_INVALID, "a copy reaches beyond its block of device memory"};
  return {place.memory->buffer.get(), place.offset};
}

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out) {
  return pooled([&] {
    check_lost(*device);
    auto memory = std::make_unique<rosin_memory>();
    const bool is_unified = device->facts->is_unified;
    memory->buffer = block_of(*device, bytes, is_unified ? storage_shared : storage_private);
    memory->bytes = bytes;
    if (is_unified) memory->contents = static_cast<char*>(send::contents(memory->buffer.get()));
    *out = memory.release();
  });
}

void release(rosin_device*, rosin_memory* memory) {
  pooled([&] { delete memory; });
}

rosin_status memory_left(rosin_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return pooled([&] {
    const uint64_t total = device->facts->info.memory, used = send::allocated_size(device->id());
    *free_bytes = used < total ? total - used : 0;
    *total_bytes = total;
  });
}

rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out) {
  return pooled([&] {
    Owned block = host_block(*device, bytes);
    void* contents = send::contents(block.get());
    const std::lock_guard guard(device->lock);
    device->pinned.emplace(static_cast<const char*>(contents), std::pair(std::move(block), bytes));
    *out = contents;
  });
}

void release_pinned(rosin_device* device, void* memory) {
  pooled([&] {
    const std::lock_guard guard(device->lock);
    device->pinned.erase(static_cast<const char*>(memory));
  });
}

rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
  return pooled([&] {
    const Part target = part_of(to, bytes);
    check_lost(*stream->device);
    if (bytes == 0) return;
    const Part source = pinned_part(*stream->device, from, bytes);
    if (to.memory->contents && (!source.buffer || is_idle(*stream))) {
      finish(*stream);
      std::memcpy(to.memory->contents + to.offset, from, bytes);
      return;
    }
    if (source.buffer) return give_copy(*stream, target, source, bytes);
    const Owned between = host_block(*stream->device, bytes);
    std::memcpy(send::contents(between.get()), from, bytes);
    give_copy(*stream, target, {between.get(), 0}, bytes);
    finish(*stream);
  });
}

rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
  return pooled([&] {
    const Part source = part_of(from, bytes);
    check_lost(*stream->device);
    if (bytes == 0) return;
    const Part target = pinned_part(*stream->device, to, bytes);
    if (from.memory->contents && (!target.buffer || is_idle(*stream))) {
      finish(*stream);
      std::memcpy(to, from.memory->contents + from.offset, bytes);
      return;
    }
    if (target.buffer) return give_copy(*stream, target, source, bytes);
    const Owned between = host_block(*stream->device, bytes);
    give_copy(*stream, {between.get(), 0}, source, bytes);
    finish(*stream);
    std::memcpy(to, send::contents(between.get()), bytes);
  });
}

rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes) {
  return pooled([&] {
    const Part target = part_of(to, bytes), source = part_of(from, bytes);
    check_lost(*stream->device);
    if (bytes > 0) give_copy(*stream, target, source, bytes);
  });
}

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value) {
  return pooled([&] {
    const Part target = part_of(to, bytes);
    check_lost(*stream->device);
    if (bytes > 0) give_fill(*stream, target, bytes, value);
  });
}

}  // namespace rosin::metal
