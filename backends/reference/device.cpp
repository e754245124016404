// Memory of devices and pinned memory; see device.hpp.
#include "device.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <stdexcept>

using rosin::reference::Failure;
using rosin::reference::need;

namespace {

#ifdef _WIN32
void* aligned_alloc(size_t unit, size_t bytes) { return _aligned_malloc(bytes, unit); }
void free_aligned(void* memory) { _aligned_free(memory); }
#else
using std::aligned_alloc;
void free_aligned(void* memory) { std::free(memory); }
#endif

void* aligned_bytes(uint64_t bytes) {
  constexpr uint64_t unit = rosin::reference::alignment;
  void* memory = bytes > uint64_t{1} << 40 ? nullptr : aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (!memory) throw std::bad_alloc();
  // What is read before it is written shows: NaN or -1.
  std::memset(memory, 0xff, bytes);
  return memory;
}

}  // namespace

rosin_memory* rosin_device::alloc(uint64_t bytes) {
  need_alive();
  need(bytes > 0, "alloc: 0 bytes");
  const bool fails = allocations_++ == options.alloc_fail;
  const uint64_t before = used_.fetch_add(bytes);
  if (fails || before > options.memory || bytes > options.memory - before) {
    used_ -= bytes;
    throw Failure(ROSIN_OUT_OF_MEMORY, "alloc: " + std::to_string(bytes) + " bytes asked for, " +
                                           std::to_string(before) + " of " + std::to_string(options.memory) +
                                           " in use" + (fails ? "; alloc_fail says so" : ""));
  }
  try {
    auto memory = std::make_unique<rosin_memory>();
    *memory = {this, static_cast<char*>(aligned_bytes(bytes)), bytes};
    return memory.release();
  } catch (...) {
    used_ -= bytes;
    throw;
  }
}

void rosin_device::release(rosin_memory* memory) {
  used_ -= memory->bytes;
  free_aligned(memory->base);
  delete memory;
}

void rosin_device::need_alive() const {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  throw Failure(ROSIN_DEVICE_FAULT, why_);
}

void rosin_device::need_graphs(const char* step) const {
  if (options.no_graph != step) return;
  throw Failure(ROSIN_UNSUPPORTED, std::string("graphs: no ") + step + "; no_graph says so");
}

void rosin_device::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!failed_) why_ = why;
  failed_ = true;
}

void rosin_device::begin_launch(const std::string& kernel, int64_t copies_before) {
  const int64_t number = launches_++;
  if (number == options.fault) throw std::runtime_error("kernel " + kernel + ": a fault, as fault=N says");
  if (number != options.hold) return;
  std::unique_lock lock(mutex_);
  if (!copied_.wait_for(lock, std::chrono::seconds(20), [&] { return last_copied_ > copies_before; })) {
    throw std::runtime_error("kernel " + kernel + ": held, as hold=N says, and nothing is copied out");
  }
}

void rosin_device::end_copy_out(int64_t number) {
  const std::lock_guard lock(mutex_);
  last_copied_ = std::max(last_copied_, number);
  copied_.notify_all();
}

namespace rosin::reference {
namespace {

/// Never destroyed: threads may look at it until the process ends.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, uint64_t> blocks;  // bytes of each
};

Pinned& pinned() {
  static auto* all = new Pinned;
  return *all;
}

}  // namespace

const char* target_name(bool float64) { return float64 ? "reference" : "reference-float32"; }

void* alloc_pinned(uint64_t bytes) {
  need(bytes > 0, "alloc_pinned: 0 bytes");
  void* memory = aligned_bytes(bytes);
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks[static_cast<char*>(memory)] = bytes;
  return memory;
}

void release_pinned(void* memory) {
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks.erase(static_cast<char*>(memory));
  free_aligned(memory);
}

void pin_memory(void* memory, uint64_t bytes) {
  need(memory != nullptr && bytes > 0, "pin: no memory");
  auto* from = static_cast<char*>(memory);
  const std::lock_guard lock(pinned().mutex);
  const auto next = pinned().blocks.upper_bound(from);
  bool free = next == pinned().blocks.end() || from + bytes <= next->first;
  if (next != pinned().blocks.begin()) {
    const auto before = std::prev(next);
    free = free && before->first + before->second <= from;
  }
  need(free, "pin: some of it is pinned already");
  pinned().blocks[from] = bytes;
}

void unpin_memory(void* memory) {
  const std::lock_guard lock(pinned().mutex);
  pinned().blocks.erase(static_cast<char*>(memory));
}

bool is_pinned(const void* memory, uint64_t bytes) {
  const auto* from = static_cast<const char*>(memory);
  const std::lock_guard lock(pinned().mutex);
  auto block = pinned().blocks.upper_bound(from);
  if (block == pinned().blocks.begin()) return false;
  --block;
  const auto offset = static_cast<uint64_t>(from - block->first);
  return offset <= block->second && bytes <= block->second - offset;
}

char* bytes_at(const rosin_device& device, rosin_place place, uint64_t bytes) {
  need(place.memory != nullptr, "a place without memory");
  need(place.memory->device == &device, "a place in memory of another device");
  if (place.offset > place.memory->bytes || bytes > place.memory->bytes - place.offset) {
    throw Failure(ROSIN_INVALID, std::to_string(bytes) + " bytes at offset " + std::to_string(place.offset) +
                                     " of a block of " + std::to_string(place.memory->bytes));
  }
  return place.memory->base + place.offset;
}

}  // namespace rosin::reference
