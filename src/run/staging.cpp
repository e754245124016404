// See staging.hpp.
#include "run/staging.hpp"

#include <algorithm>
#include <bit>

#include "run/open_device.hpp"

namespace rosin {

/// One that fits and that no copy uses, else the oldest, where there are enough. Holds the lock.
bool Staging::take_idle(size_t bytes, Block& found) {
  auto block =
      std::find_if(idle_.begin(), idle_.end(), [&](const Block& b) { return b.bytes >= bytes && is_over(b.used_by); });
  if (block == idle_.end()) {
    if (all_ < kept || idle_.empty()) return false;
    block = idle_.begin();
  }
  found = *block;
  idle_.erase(block);
  return true;
}

Staging::Block Staging::take(size_t bytes) {
  constexpr size_t least = 4096;
  Block block;
  {
    const std::lock_guard guard(lock_);
    if (!take_idle(bytes, block)) {
      idle_.reserve(all_ + 1);  // so that `put` never fails
      ++all_;
    }
  }
  try {
    if (!is_over(block.used_by)) Stream::of(block.used_by).wait(block.used_by);
    if (block.bytes >= bytes) return block;
    if (block.memory) device_.functions.release_pinned(device_.device, block.memory);
    block = {};
    void* memory = nullptr;
    const size_t size = std::max(std::bit_ceil(bytes), least);
    device_.check(device_.functions.alloc_pinned(device_.device, size, &memory), "copy");
    return {static_cast<unsigned char*>(memory), size, {}};
  } catch (...) {
    put(block, block.used_by);
    throw;
  }
}

void Staging::put(Block block, Ticket used_by) noexcept {
  block.used_by = used_by;
  const std::lock_guard guard(lock_);
  idle_.push_back(block);
}

}  // namespace rosin
