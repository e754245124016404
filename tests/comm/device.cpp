// See device.hpp.
#include "device.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

namespace comm_test {
namespace {

// In the order of rosin_comm_type.
constexpr uint64_t bytes_of_type[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};

/// What a part reads and writes, in multiples of its bytes.
uint64_t sent(const rosin_comm_collective& c, int rank, int ranks) {
  switch (c.kind) {
    case ROSIN_COMM_BROADCAST: return rank == c.root ? 1 : 0;
    case ROSIN_COMM_RECEIVE: return 0;
    case ROSIN_COMM_REDUCE_SCATTER: return static_cast<uint64_t>(ranks);
    default: return 1;
  }
}

uint64_t received(const rosin_comm_collective& c, int rank, int ranks) {
  switch (c.kind) {
    case ROSIN_COMM_REDUCE: return rank == c.root ? 1 : 0;
    case ROSIN_COMM_SEND: return 0;
    case ROSIN_COMM_ALLGATHER: return static_cast<uint64_t>(ranks);
    default: return 1;
  }
}

}  // namespace

/// A stretch of host memory and its place on the device.
struct Device::Block {
  char* host;
  uint64_t bytes;
  rosin_memory* memory;

  bool holds(const void* begin, uint64_t count) const {
    const auto* const first = static_cast<const char*>(begin);
    return first >= host && first + count <= host + bytes;
  }
};

bool Device::good(rosin_status status, const char* what) const {
  if (status == ROSIN_OK) return true;
  std::printf("FAILED: %s: %s\n", what, functions_->error_text());
  std::fflush(stdout);
  return false;
}

std::unique_ptr<Device> Device::open(const char* plugin, int id) {
  void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  const auto enter =
      library ? reinterpret_cast<rosin_backend_open_function>(dlsym(library, "rosin_backend_open")) : nullptr;
  std::unique_ptr<Device> made(new Device);
  made->functions_ = enter ? enter(ROSIN_BACKEND_ABI) : nullptr;
  if (!made->functions_) {
    std::printf("FAILED: %s is no plug-in of devices\n", plugin);
    return nullptr;
  }
  const rosin_backend& f = *made->functions_;
  int32_t count = 0;
  if (!made->good(f.device_count(&count), "device_count") || count == 0) return nullptr;
  if (!made->good(f.open(id % count, &made->device_), "open")) return nullptr;
  if (!made->good(f.stream_create(made->device_, &made->stream_), "stream_create")) return nullptr;
  return made->good(f.event_create(made->device_, &made->event_), "event_create") ? std::move(made) : nullptr;
}

/// Memory for what the parts read and write, which `parts` names then; one block where one lies in the other.
std::vector<Device::Block> Device::blocks(const rosin_comm_collective& c, std::vector<rosin_comm_part>& parts, int rank,
                                          int ranks) {
  std::vector<Block> made;
  const auto place = [&](const void* host, uint64_t bytes) -> void* {
    if (!host || bytes == 0) return nullptr;
    for (const Block& block : made) {
      if (!block.holds(host, bytes)) continue;
      const auto offset = static_cast<const char*>(host) - block.host;
      return *static_cast<char**>(functions_->native_memory(block.memory)) + offset;
    }
    Block block{static_cast<char*>(const_cast<void*>(host)), bytes, nullptr};
    good(functions_->alloc(device_, bytes, &block.memory), "alloc");
    good(functions_->copy_in(stream_, {block.memory, 0}, host, bytes), "copy_in");
    made.push_back(block);
    return *static_cast<char**>(functions_->native_memory(block.memory));
  };
  for (rosin_comm_part& part : parts) {
    const uint64_t bytes = c.type >= 0 && c.type < 15 ? part.count * bytes_of_type[c.type] : 0;
    const uint64_t send = sent(c, rank, ranks) * bytes, receive = received(c, rank, ranks) * bytes;
    if (send >= receive) {  // the larger first: the other one may lie in it
      part.send = place(part.send, send);
      part.receive = place(part.receive, receive);
    } else {
      part.receive = place(part.receive, receive);
      part.send = place(part.send, send);
    }
  }
  return made;
}

rosin_comm_status Device::wait(const rosin_comm_transport& transport, rosin_comm* comm) {
  good(functions_->event_record(event_, stream_), "event_record");
  for (rosin_status status; (status = functions_->event_query(event_)) != ROSIN_OK;) {
    if (status != ROSIN_NOT_READY) {
      good(status, "event_query");
      return ROSIN_COMM_FAILED;
    }
    if (const rosin_comm_status broken = transport.check(comm); broken != ROSIN_COMM_OK) return broken;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return transport.check(comm);
}

rosin_comm_status Device::run(const rosin_comm_transport& transport, rosin_comm* comm, const rosin_comm_collective& c,
                              int rank, int ranks, bool with_stream) {
  std::vector<rosin_comm_part> parts(c.parts, c.parts + c.part_count);
  const std::vector<Block> memory = blocks(c, parts, rank, ranks);
  rosin_comm_collective there = c;
  there.parts = parts.empty() ? nullptr : parts.data();
  there.memory = ROSIN_COMM_DEVICE;
  there.stream = with_stream ? functions_->native_stream(stream_) : nullptr;
  if (!with_stream) good(functions_->stream_sync(stream_), "stream_sync");
  rosin_comm_status status = transport.run(comm, &there);
  if (status == ROSIN_COMM_OK && with_stream) status = wait(transport, comm);
  for (const Block& block : memory) {
    if (status == ROSIN_COMM_OK) {
      good(functions_->copy_out(stream_, block.host, {block.memory, 0}, block.bytes), "copy_out");
    }
  }
  good(functions_->stream_sync(stream_), "stream_sync");
  for (const Block& block : memory) functions_->release(device_, block.memory);
  return status;
}

}  // namespace comm_test
