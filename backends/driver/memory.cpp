// Blocks of device memory, pinned host memory, and copies. Read next: streams.cpp.
#include <memory>

#include "driver/driver.hpp"

namespace rosin::driver {
namespace {

constexpr unsigned portable = 1;  // pinned for all contexts

void check_bytes(uint64_t bytes) {
  if (bytes == 0) throw Failure{ROSIN_INVALID, "a block has at least one byte"};
}

}  // namespace

Address address_of(const rosin_place& place, uint64_t bytes) {
  if (!place.memory || place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset)
    throw Failure{ROSIN_INVALID, "a copy reaches beyond its block of device memory"};
  return place.memory->address + place.offset;
}

rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out) {
  return guarded([&] {
    check_bytes(bytes);
    auto memory = std::make_unique<rosin_memory>();
    memory->bytes = bytes;
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.alloc(&memory->address, bytes), "allocation");
    *out = memory.release();
  });
}

void release(rosin_device* device, rosin_memory* memory) {
  if (!memory) return;
  guarded([&] {
    const Current current(*device);
    the_driver().functions.free(memory->address);
  });
  delete memory;
}

rosin_status memory_left(rosin_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return guarded([&] {
    const Current current(*device);
    const Driver& driver = the_driver();
    size_t left = 0, total = 0;
    driver.check(driver.functions.memory_info(&left, &total), "question for free memory");
    *free_bytes = left;
    *total_bytes = total;
  });
}

rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out) {
  return guarded([&] {
    check_bytes(bytes);
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.alloc_host(out, bytes, portable), "allocation of pinned memory");
  });
}

void release_pinned(rosin_device* device, void* memory) {
  guarded([&] {
    const Current current(*device);
    the_driver().functions.free_host(memory);
  });
}

rosin_status pin(rosin_device* device, void* memory, uint64_t bytes) {
  return guarded([&] {
    check_bytes(bytes);
    const Current current(*device);
    const Driver& driver = the_driver();
    driver.check(needed(driver.functions.pin, "pinning")(memory, bytes, portable), "pinning of host memory");
  });
}

void unpin(rosin_device* device, void* memory) {
  guarded([&] {
    const Current current(*device);
    needed(the_driver().functions.unpin, "pinning")(memory);
  });
}

rosin_status fill(rosin_stream* stream, rosin_place to, uint64_t bytes, uint8_t value) {
  return guarded([&] {
    const Address target = address_of(to, bytes);
    if (bytes == 0) return;
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(needed(driver.functions.fill, "fill")(target, value, bytes, stream->stream), "fill");
  });
}

// The driver itself copies pageable memory aside before it returns, or waits until it is filled.
rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
  return guarded([&] {
    const Address target = address_of(to, bytes);
    if (bytes == 0) return;
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.copy_in(target, from, bytes, stream->stream), "copy to the device");
  });
}

rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    const Address source = address_of(from, bytes);
    if (bytes == 0) return;
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.copy_out(to, source, bytes, stream->stream), "copy from the device");
  });
}

rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes) {
  return guarded([&] {
    const Address target = address_of(to, bytes), source = address_of(from, bytes);
    if (bytes == 0) return;
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.copy(target, source, bytes, stream->stream), "copy on the device");
  });
}

// Through the host where the devices cannot reach each other: the driver chooses.
rosin_status copy_peer(rosin_stream* stream, rosin_place to, rosin_device* from_device, rosin_place from,
                       uint64_t bytes) {
  return guarded([&] {
    const Address target = address_of(to, bytes), source = address_of(from, bytes);
    if (bytes == 0) return;
    const Current current(*stream->device);
    const Driver& driver = the_driver();
    driver.check(driver.functions.copy_peer(target, stream->device->context, source, from_device->context, bytes,
                                            stream->stream),
                 "copy between devices");
  });
}

void* native_memory(rosin_memory* memory) { return &memory->address; }

}  // namespace rosin::driver
