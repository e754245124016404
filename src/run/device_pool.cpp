// See device_pool.hpp.
#include "run/device_pool.hpp"

#include <algorithm>
#include <vector>

#include "run/memory_text.hpp"
#include "run/open_device.hpp"
#include "run/plan_cache.hpp"

namespace rosin {
namespace {

constexpr size_t listed_blocks = 10;

}  // namespace

DevicePool::DevicePool(OpenDevice& device, int index, uint64_t largest_block) noexcept
    : device_(device), index_(index), largest_block_(largest_block) {}

DeviceBlock* DevicePool::allocate(size_t bytes) {
  const int size_class = size_class_of(bytes);
  DeviceBlock* block = take(size_class);
  if (block && block->arriving) {  // dropped before it was used: the copy may still run
    SharedEvent& copied = *block->arriving.exchange(nullptr);
    std::lock_guard guard(copied.lock);
    device_.functions.event_sync(copied.event);
  }
  if (!block) block = make(size_class);
  if (!block) {
    PlanCache::instance().strip();
    trim();
    block = make(size_class);
  }
  if (!block) throw_out_of_memory(bytes);
  return block;
}

DeviceBlock* DevicePool::take(int size_class) {
  std::lock_guard guard(lock_);
  DeviceBlock*& list = free_[size_class];
  DeviceBlock* block = list;
  if (!block) return nullptr;
  list = block->next;
  block->owners.store(1, std::memory_order_relaxed);
  usage_.cached -= static_cast<int64_t>(block->bytes);
  list_live(block);
  return block;
}

/// A block that the device makes; null where it has no memory left for it.
DeviceBlock* DevicePool::make(int size_class) {
  const size_t bytes = bytes_of_size_class(size_class);
  std::lock_guard guard(lock_);
  if (usage_.limit > 0 && usage_.live + usage_.cached + static_cast<int64_t>(bytes) > usage_.limit) return nullptr;
  if (bytes > largest_block_) return nullptr;
  auto* block = new DeviceBlock;
  rosin_memory* memory = nullptr;
  const rosin_status status = device_.functions.alloc(device_.device, bytes, &memory);
  if (status != ROSIN_OK) {
    delete block;
    if (status == ROSIN_OUT_OF_MEMORY) return nullptr;
    throw Error(ErrorKind::backend, "allocate: failed on " + device_.name + "; " + device_.functions.error_text());
  }
  block->device = index_;
  block->data = memory;
  block->bytes = bytes;
  block->pool = this;
  block->size_class = size_class;
  block->release = [](Memory* self) noexcept {
    auto* own = static_cast<DeviceBlock*>(self);
    own->pool->put(own);
  };
  list_live(block);
  return block;
}

/// Holds the lock.
void DevicePool::list_live(DeviceBlock* block) {
  block->previous = nullptr;
  block->next = live_list_;
  if (live_list_) live_list_->previous = block;
  live_list_ = block;
  usage_.live += static_cast<int64_t>(block->bytes);
  usage_.peak = std::max(usage_.peak, usage_.live);
}

void DevicePool::put(DeviceBlock* block) noexcept {
  std::lock_guard guard(lock_);
  (block->previous ? block->previous->next : live_list_) = block->next;
  if (block->next) block->next->previous = block->previous;
  usage_.live -= static_cast<int64_t>(block->bytes);
  usage_.cached += static_cast<int64_t>(block->bytes);
  block->label.clear();
  DeviceBlock*& list = free_[block->size_class];
  block->next = list;
  list = block;
}

void DevicePool::destroy(DeviceBlock* block) noexcept {
  device_.functions.release(device_.device, static_cast<rosin_memory*>(block->data));
  delete block;
}

void DevicePool::trim() {
  std::vector<DeviceBlock*> chains;
  {
    std::lock_guard guard(lock_);
    for (DeviceBlock*& list : free_) {
      if (list) chains.push_back(list);
      list = nullptr;
    }
    usage_.cached = 0;
  }
  if (chains.empty()) return;
  device_.synchronize();
  for (DeviceBlock* block : chains) {
    while (block) {
      DeviceBlock* next = block->next;
      destroy(block);
      block = next;
    }
  }
}

void DevicePool::set_limit(int64_t bytes) {
  std::lock_guard guard(lock_);
  usage_.limit = std::max<int64_t>(bytes, 0);
}

DevicePool::Usage DevicePool::usage() {
  std::lock_guard guard(lock_);
  return usage_;
}

void DevicePool::throw_out_of_memory(size_t bytes) {
  std::string text = "allocate: out of memory on " + device_.name + "; requested " +
                     mebibytes(static_cast<int64_t>(bytes_of_size_class(size_class_of(bytes)))) + ", ";
  std::vector<std::pair<size_t, std::string>> blocks;
  {
    std::lock_guard guard(lock_);
    text += "live " + mebibytes(usage_.live) + ", cached " + mebibytes(usage_.cached) + ", largest possible block " +
            mebibytes(static_cast<int64_t>(largest_block_));
    if (usage_.limit > 0) text += ", limit " + mebibytes(usage_.limit);
    for (const DeviceBlock* block = live_list_; block; block = block->next) {
      blocks.emplace_back(block->bytes, block->label);
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (blocks.size() > listed_blocks) blocks.resize(listed_blocks);
  if (!blocks.empty()) text += "; largest live arrays:";
  for (const auto& [size, label] : blocks) {
    text += " " + (label.empty() ? std::string() : label + " ") + mebibytes(static_cast<int64_t>(size)) + ",";
  }
  if (!blocks.empty()) text.pop_back();
  throw Error(ErrorKind::memory, text + "; use a smaller batch or drop arrays that are no longer needed");
}

}  // namespace rosin
