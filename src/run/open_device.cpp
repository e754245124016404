// See open_device.hpp.
#include "run/open_device.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <rosin/error.hpp>

#include "run/status.hpp"

namespace rosin {
namespace {

constexpr size_t staging_bytes = size_t{8} << 20;  // of one piece of a copy

}  // namespace

rosin_device* OpenDevice::open(int id) {
  info.size = sizeof info;
  require_ok(functions, functions.device_info(id, &info), "open", name);
  rosin_device* opened = nullptr;
  require_ok(functions, functions.open(id, &opened), "open", name);
  return opened;
}

OpenDevice::OpenDevice(const rosin_backend& backend, int id, std::string text, int index)
    : functions(backend), name(std::move(text)), device(open(id)), pool(*this, index, info.largest_allocation),
      kernels(backend, device, name, info) {
  const rosin_status status = functions.stream_create(device, &stream);
  if (status == ROSIN_OK) return;
  const std::string said = functions.error_text();
  functions.close(device);
  throw Error(ErrorKind::device, "open: " + name + " gives no stream; " + said);
}

OpenDevice::Turn::Turn(OpenDevice& device) : lock_(device.turn_) {
  if (!device.fault_.empty()) {
    throw Error(ErrorKind::backend, device.name + ": the device failed before and is not used any more; " +
                                        device.fault_ + "; other devices work on, this one needs a new process");
  }
}

void OpenDevice::synchronize() {
  const Turn turn(*this);
  settle(turn);
}

void OpenDevice::settle(const Turn&) {
  std::vector<rosin_call*> ended;
  {
    std::lock_guard guard(retiring_);
    ended.swap(retired_);
  }
  check(functions.stream_sync(stream), "synchronize");
  noted_ = 0;
  for (rosin_call* call : ended) functions.call_destroy(call);
}

void OpenDevice::retire(rosin_call* call) noexcept {
  std::lock_guard guard(retiring_);
  try {
    retired_.push_back(call);
  } catch (const std::bad_alloc&) {  // then it stays
  }
}

void OpenDevice::fail(rosin_status status, std::string_view what) {
  if (status != ROSIN_DEVICE_FAULT) throw_status(functions, status, what, name);
  fault_ = functions.error_text();
  std::string text = std::string(what) + ": " + name + " failed; " + fault_;
  if (noted_ > 0) text += "; in flight, the last ones:";
  for (size_t i = noted_ - std::min(noted_, in_flight_.size()); i < noted_; ++i) {
    text += " [" + in_flight_[i % in_flight_.size()] + "]";
  }
  throw Error(ErrorKind::backend, text + "; ROSIN_SYNC=1 launches one by one and names the op");
}

void OpenDevice::note(const std::string& ops) { in_flight_[noted_++ % in_flight_.size()] = ops; }

void OpenDevice::trim() {
  unload_kernels();
  pool.trim();
}

void OpenDevice::unload_kernels() {
  const Turn turn(*this);
  settle(turn);
  kernels.unload_unused();
}

/// Holds `uploading_`. Waits until the copy that went through it last has ended.
OpenDevice::Staging& OpenDevice::next_staging(size_t bytes) {
  Staging& staging = staging_[next_staging_++ % staging_.size()];
  {
    std::lock_guard guard(staging.copied.lock);
    if (!staging.copied.event) check(functions.event_create(device, &staging.copied.event), "copy to the device");
    check(functions.event_sync(staging.copied.event), "copy to the device");
  }
  if (staging.bytes >= bytes) return staging;
  if (staging.memory) functions.release_pinned(device, staging.memory);
  staging.memory = nullptr;
  staging.bytes = 0;
  check(functions.alloc_pinned(device, bytes, &staging.memory), "copy to the device");
  staging.bytes = bytes;
  return staging;
}

void OpenDevice::upload(DeviceBlock& to, const void* from, size_t bytes) {
  std::lock_guard guard(uploading_);
  if (!copy_stream_) check(functions.stream_create(device, &copy_stream_), "copy to the device");
  if (!used_) check(functions.event_create(device, &used_), "copy to the device");
  {
    const Turn turn(*this);
    check(functions.event_record(used_, stream), "copy to the device");
  }
  check(functions.stream_wait(copy_stream_, used_), "copy to the device");
  for (size_t begin = 0; begin < bytes; begin += staging_bytes) {
    const size_t count = std::min(bytes - begin, staging_bytes);
    Staging& staging = next_staging(std::bit_ceil(count));
    std::memcpy(staging.memory, static_cast<const unsigned char*>(from) + begin, count);
    const rosin_place place{static_cast<rosin_memory*>(to.data), begin};
    check(functions.copy_in(copy_stream_, place, staging.memory, count), "copy to the device");
    std::lock_guard recording(staging.copied.lock);
    check(functions.event_record(staging.copied.event, copy_stream_), "copy to the device");
    to.arriving = &staging.copied;
  }
}

void OpenDevice::wait_for(DeviceBlock& block) {
  SharedEvent& copied = *block.arriving.load();
  std::lock_guard guard(copied.lock);
  check(functions.stream_wait(stream, copied.event), "copy to the device");
  block.arriving = nullptr;
}

}  // namespace rosin
