// See device_memory.hpp.
#include "dist/device_memory.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include <rosin/log.hpp>

#include "devices/preferences.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "run/device_table.hpp"
#include "run/transfer.hpp"

namespace rosin::distributed {
namespace {

constexpr size_t least_pinned = 4096;
constexpr const char* not_in_time = "a collective on a device did not end in time";

DeviceBlock& block_of(const Array& x) { return static_cast<DeviceBlock&>(*x.node()->buffer); }
rosin_memory* memory_of(const Array& x) { return static_cast<rosin_memory*>(block_of(x).data); }
size_t element_bytes(const rosin_comm_collective& c) { return size_of(static_cast<DType>(c.type)); }

bool gives(const rosin_comm_collective& c, int rank) {
  return c.kind == ROSIN_COMM_BROADCAST ? rank == c.root : c.kind != ROSIN_COMM_RECEIVE;
}

bool takes(const rosin_comm_collective& c, int rank) {
  switch (c.kind) {
    case ROSIN_COMM_BROADCAST: return rank != c.root;
    case ROSIN_COMM_REDUCE: return rank == c.root;
    default: return c.kind != ROSIN_COMM_SEND;
  }
}

/// The user says that MPI takes memory of GPUs, and MPI says that it does not.
void warn_about_preference(const rosin_comm_transport& transport, std::string_view backend) {
  if (transport.name != MPIBackend::transport || (backend != "CUDA" && backend != "AMDGPU")) return;
  const std::string reason = transport.error_text();
  if (!mpi_gpu_aware_preference()) return;
  warn_once("mpi-gpu-aware", "distributed: MPI is to get arrays of devices as they lie there (mpi_gpu_aware); MPI " +
                                 reason + "; they are copied to the host and back");
}

/// How the transport takes memory of this device, as far as the user lets it.
rosin_comm_devices way_of(const rosin_comm_transport& transport, rosin_comm& comm, int position,
                          const OpenDevice& device) {
  const bool knows = transport.size > offsetof(rosin_comm_transport, takes_devices) && transport.takes_devices;
  if (!knows || !device.functions.native_memory) return ROSIN_COMM_NO_DEVICES;
  const std::string backend(DeviceTable::instance().backend_of(position));
  switch (transport.takes_devices(&comm, backend.c_str())) {
    case ROSIN_COMM_WITH_STREAM: {
      const bool is_checked = transport.size > offsetof(rosin_comm_transport, check) && transport.check;
      return is_checked && device.functions.native_stream ? ROSIN_COMM_WITH_STREAM : ROSIN_COMM_NO_DEVICES;
    }
    case ROSIN_COMM_AT_REST: return mpi_gpu_aware_preference() ? ROSIN_COMM_AT_REST : ROSIN_COMM_NO_DEVICES;
    default: warn_about_preference(transport, backend); return ROSIN_COMM_NO_DEVICES;
  }
}

}  // namespace

/// Where the elements of pieces stand in memory of the host, each part at a multiple of what copies like, and which
/// bytes of the arrays they are.
class DeviceMemory::HostPlaces {
 public:
  HostPlaces(const rosin_comm_collective& c, std::span<const Piece> pieces, int ranks) {
    const size_t element = element_bytes(c);
    for (const Piece& piece : pieces) {
      const size_t bytes = static_cast<size_t>(piece.count) * element, all = bytes * static_cast<size_t>(ranks);
      const size_t sent = c.kind == ROSIN_COMM_REDUCE_SCATTER ? all : bytes;
      const size_t received = c.kind == ROSIN_COMM_ALLGATHER ? all : bytes;
      const Place send = add(piece.send_begin, sent, element);
      const bool is_in_place = piece.is_in_place() && sent == received;
      places_.push_back({send, is_in_place ? send : add(piece.receive_begin, received, element)});
    }
  }
  struct Place {
    size_t host = 0;    // in memory of the host
    size_t device = 0;  // in the array
    size_t bytes = 0;
  };
  struct Places {
    Place send, receive;
  };
  const Places& operator[](size_t piece) const { return places_[piece]; }
  size_t bytes() const { return bytes_; }

 private:
  Place add(int64_t begin, size_t bytes, size_t element) {
    constexpr size_t alignment = 64;
    const Place place{bytes_, static_cast<size_t>(begin) * element, bytes};
    bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return place;
  }

  std::vector<Places> places_;
  size_t bytes_ = 0;
};

void look_at_checks(const Array& x) {
  if (x.node()->device == 0) return;
  IndexFlags& flags = DeviceTable::instance().open(x.node()->device).flags;
  flags.look(block_of(x).made_by);
  flags.refuse_lost(block_of(x));
}

DeviceMemory::DeviceMemory(const rosin_comm_transport& transport, rosin_comm& comm, const rosin_comm_place& place,
                           int position)
    : transport_(transport), comm_(comm), place_(place), device_(DeviceTable::instance().open(position)),
      stream_(device_.stream(StreamKind::communication)), way_(way_of(transport, comm, position, device_)) {}

rosin_comm_status DeviceMemory::run(rosin_comm_collective collective, std::span<const Piece> pieces, bool more) {
  if (way_ != ROSIN_COMM_NO_DEVICES) {
    const rosin_comm_status status =
        way_ == ROSIN_COMM_WITH_STREAM ? run_on_stream(collective, pieces, more) : run_at_rest(collective, pieces);
    if (status != ROSIN_COMM_UNSUPPORTED) return status;
  }
  return run_staged(collective, pieces);
}

/// For who has the turn: what is given from now on may read what is sent and write what is received.
void DeviceMemory::order(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    stream_.order_to_read(block_of(piece.send));
    stream_.order_to_write(block_of(piece.receive));
  }
}

void DeviceMemory::has_written(std::span<const Piece> pieces, Ticket work) {
  for (const Piece& piece : pieces) {
    stream_.has_written(block_of(piece.receive), work);
    block_of(piece.receive).made_by.store({}, std::memory_order_relaxed);
  }
}

DeviceMemory::Parts DeviceMemory::addresses(const rosin_comm_collective& c, std::span<const Piece> pieces) const {
  const auto address = [&](const Array& x, int64_t begin) {
    if (x.count() == 0) return static_cast<void*>(nullptr);
    auto* const memory = static_cast<char*>(*static_cast<void**>(device_.functions.native_memory(memory_of(x))));
    return static_cast<void*>(memory + static_cast<size_t>(begin) * element_bytes(c));
  };
  Parts parts;
  for (const Piece& piece : pieces) {
    parts.push_back({address(piece.send, piece.send_begin), address(piece.receive, piece.receive_begin),
                     static_cast<uint64_t>(piece.count)});
  }
  return parts;
}

rosin_comm_status DeviceMemory::run_on_stream(rosin_comm_collective& c, std::span<const Piece> pieces, bool more) {
  const Parts parts = addresses(c, pieces);
  Ticket work;
  {
    const DeviceStream::Turn turn(stream_);
    order(pieces);
    c.parts = parts.data();
    c.memory = ROSIN_COMM_DEVICE;
    c.stream = device_.functions.native_stream(stream_.queue());
    if (const rosin_comm_status status = transport_.run(&comm_, &c); status != ROSIN_COMM_OK) return status;
    work = stream_.record();
    for (const Piece& piece : pieces) stream_.has_read(block_of(piece.send), work);
    has_written(pieces, work);
  }
  under_way_.insert(under_way_.end(), pieces.begin(), pieces.end());
  last_ = work;
  return more ? ROSIN_COMM_OK : settle(c.timeout);
}

rosin_comm_status DeviceMemory::settle(double timeout) {
  if (under_way_.empty()) return ROSIN_COMM_OK;
  const rosin_comm_status status = wait(last_, timeout);
  if (status == ROSIN_COMM_OK) under_way_.clear();  // else a library may write to it yet
  return status;
}

/// Asks whether the work is over, and whether it ever will be.
rosin_comm_status DeviceMemory::wait(Ticket work, double timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds busy{300}, pause{50};
  const auto begin = Clock::now();
  bool given_up = false;
  while (!stream_.has_ended(work)) {
    const auto waited = Clock::now() - begin;
    if (waited > busy) std::this_thread::sleep_for(pause);
    if (transport_.check(&comm_) != ROSIN_COMM_OK && given_up) break;
    if (given_up || timeout <= 0 || std::chrono::duration<double>(waited).count() < timeout) continue;
    if (ask_for_all() == ROSIN_COMM_OK) transport_.abort(&comm_, not_in_time);
    given_up = true;
  }
  return transport_.check(&comm_);
}

/// Ranks that are there wait as this one does, and come: who does not is named by what check() says from then on.
rosin_comm_status DeviceMemory::ask_for_all() const {
  constexpr double patience = 2;  // seconds: all are told within five of the timeout
  rosin_comm_collective c{};
  c.size = sizeof c;
  c.kind = ROSIN_COMM_BARRIER;
  c.name = not_in_time;
  c.timeout = patience;
  return transport_.run(&comm_, &c);
}

rosin_comm_status DeviceMemory::run_at_rest(rosin_comm_collective& c, std::span<const Piece> pieces) {
  const Parts parts = addresses(c, pieces);
  Ticket before;
  {
    const DeviceStream::Turn turn(stream_);
    order(pieces);
    before = stream_.record();
  }
  stream_.wait(before);
  c.parts = parts.data();
  c.memory = ROSIN_COMM_DEVICE;
  c.stream = nullptr;
  const rosin_comm_status status = transport_.run(&comm_, &c);
  for (const Piece& piece : pieces) block_of(piece.receive).made_by.store({}, std::memory_order_relaxed);
  return status;
}

/// What is sent, into memory of the host: waits for it.
void DeviceMemory::copy_out(std::span<const Piece> pieces, const HostPlaces& places, unsigned char* host) {
  Ticket copied;
  {
    const DeviceStream::Turn turn(stream_);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Array& x = pieces[i].send;
      const HostPlaces::Place& at = places[i].send;
      if (at.bytes == 0) continue;
      stream_.order_to_read(block_of(x));
      const rosin_status status =
          device_.functions.copy_out(stream_.queue(), host + at.host, {memory_of(x), at.device}, at.bytes);
      device_.check(status, "copy from the device");
    }
    copied = stream_.record();
    for (size_t i = 0; i < pieces.size(); ++i) {
      stream_.has_read(block_of(pieces[i].send), copied);
      count_copied({.from_devices = static_cast<int64_t>(places[i].send.bytes)});
    }
  }
  stream_.wait(copied);
}

/// What was received, from memory of the host: work of the stream.
void DeviceMemory::copy_in(std::span<const Piece> pieces, const HostPlaces& places, const unsigned char* host) {
  const DeviceStream::Turn turn(stream_);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Array& x = pieces[i].receive;
    const HostPlaces::Place& at = places[i].receive;
    if (at.bytes == 0) continue;
    stream_.order_to_write(block_of(x));
    const rosin_status status =
        device_.functions.copy_in(stream_.queue(), {memory_of(x), at.device}, host + at.host, at.bytes);
    device_.check(status, "copy to the device");
  }
  pinned_use_ = stream_.record();
  has_written(pieces, pinned_use_);
  for (size_t i = 0; i < pieces.size(); ++i) {
    count_copied({.to_devices = static_cast<int64_t>(places[i].receive.bytes)});
  }
}

rosin_comm_status DeviceMemory::run_staged(rosin_comm_collective& c, std::span<const Piece> pieces) {
  const HostPlaces places(c, pieces, place_.ranks);
  unsigned char* const host = pinned(places.bytes());
  if (gives(c, place_.rank)) copy_out(pieces, places, host);
  Parts parts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [send, receive] = places[i];
    parts.push_back({host + send.host, host + receive.host, static_cast<uint64_t>(pieces[i].count)});
  }
  c.parts = parts.data();
  c.memory = ROSIN_COMM_HOST;
  c.stream = nullptr;
  const rosin_comm_status status = transport_.run(&comm_, &c);
  if (status == ROSIN_COMM_TIMEOUT) pinned_ = nullptr;  // a library may write to it yet: it is never let go
  if (status == ROSIN_COMM_OK && takes(c, place_.rank)) copy_in(pieces, places, host);
  return status;
}

/// Pinned memory that no copy uses any more.
unsigned char* DeviceMemory::pinned(size_t bytes) {
  if (!is_over(pinned_use_)) stream_.wait(pinned_use_);
  if (pinned_ && pinned_bytes_ >= bytes) return pinned_;
  if (pinned_) device_.functions.release_pinned(device_.device, pinned_);
  pinned_ = nullptr;
  bytes = std::max(bytes, least_pinned);
  void* memory = nullptr;
  device_.check(device_.functions.alloc_pinned(device_.device, bytes, &memory), "copy");
  pinned_bytes_ = bytes;
  return pinned_ = static_cast<unsigned char*>(memory);
}

}  // namespace rosin::distributed
