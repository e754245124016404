// See device_pool.hpp.
#include "run/device_pool.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "run/memory_text.hpp"
#include "run/open_device.hpp"
#include "run/transfer.hpp"

namespace rosin {
namespace {

constexpr size_t listed_blocks = 10;
constexpr int most_looked_at = 64;  // free blocks, for one that is preferred

std::atomic<int64_t> blocks_made{0};

/// Where the preferred block hangs in the list. Where it is not among the first: the one of these that has been free
/// for longest, since the others are more likely what somebody else prefers, whose place in a graph would change.
DeviceBlock** find(DeviceBlock** list, const Memory* preferred) {
  DeviceBlock** oldest = list;
  int left = preferred ? most_looked_at : 0;
  for (DeviceBlock** at = list; *at && left > 0; at = &(*at)->next, --left) {
    if (*at == preferred) return at;
    oldest = at;
  }
  return oldest;
}

}  // namespace

const MemoryOperations DevicePool::operations{.release =
                                                  [](Memory* self) noexcept {
                                                    auto* own = static_cast<DeviceBlock*>(self);
                                                    own->pool->put(own);
                                                  },
                                              .wait = [](const Memory&) {},
                                              .copy = copy_memory,
                                              .fate =
                                                  [](const Memory& self, Ticket work) {
                                                    const auto& own = static_cast<const DeviceBlock&>(self);
                                                    return own.pool->device_.flags.fate(work);
                                                  }};

DevicePool::DevicePool(OpenDevice& device, int index, uint64_t largest_block) noexcept
    : device_(device), index_(index), largest_block_(largest_block) {}

DeviceBlock* DevicePool::allocate(size_t bytes, const Memory* preferred) {
  const int size_class = size_class_of(bytes);
  DeviceBlock* block = take(size_class, preferred);
  if (!block) block = make(size_class);
  return block ? block : make_after_trim(bytes);
}

DeviceBlock* DevicePool::borrow(size_t bytes, const Memory* preferred) {
  const size_t size = bytes_of_size_class(size_class_of(bytes));
  if (DeviceBlock* found = take_arena(size, most_for_arena(size), preferred)) return found;
  DeviceBlock* block = take(size_class_of(bytes), nullptr);
  if (!block) block = make(size_class_of(bytes));
  if (!block) block = take_arena(size, IdleArenas<DeviceBlock>::any, nullptr);
  if (!block) block = make_after_trim(bytes);
  block->is_arena = true;
  return block;
}

/// Where there is room only without what is free.
DeviceBlock* DevicePool::make_after_trim(size_t bytes) {
  trim();
  DeviceBlock* block = make(size_class_of(bytes));
  if (!block) throw_out_of_memory(bytes);
  return block;
}

DeviceBlock* DevicePool::take(int size_class, const Memory* preferred) {
  std::lock_guard guard(lock_);
  DeviceBlock** at = find(&free_[size_class], preferred);
  DeviceBlock* block = *at;
  if (!block) return nullptr;
  *at = block->next;
  count_taken(block);
  return block;
}

DeviceBlock* DevicePool::take_arena(size_t bytes, size_t most, const Memory* preferred) {
  std::lock_guard guard(lock_);
  DeviceBlock* arena = arenas_.take(bytes, most, preferred);
  if (arena) count_taken(arena);
  return arena;
}

/// It was free. Holds the lock.
void DevicePool::count_taken(DeviceBlock* block) {
  block->owners.store(1, std::memory_order_relaxed);
  usage_.cached -= static_cast<int64_t>(block->bytes);
  list_live(block);
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
    device_.fail(status, "allocate");
  }
  blocks_made.fetch_add(1, std::memory_order_relaxed);
  block->device = index_;
  block->data = memory;
  block->bytes = bytes;
  block->pool = this;
  block->size_class = size_class;
  block->operations = &operations;
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
  block->next = nullptr;
  if (!block->is_arena) return free_all(block);
  arenas_.put(block);
  free_all(arenas_.take_surplus());
}

/// A chain of blocks that are no arenas any more. Holds the lock.
void DevicePool::free_all(DeviceBlock* block) noexcept {
  while (block) {
    DeviceBlock* next = block->next;
    block->is_arena = false;
    block->next = free_[block->size_class];
    free_[block->size_class] = block;
    block = next;
  }
}

void DevicePool::destroy(DeviceBlock* block) noexcept {
  device_.functions.release(device_.device, static_cast<rosin_memory*>(block->data));
  delete block;
}

void DevicePool::trim() {
  std::vector<DeviceBlock*> chains;
  int64_t bytes = 0;
  {
    std::lock_guard guard(lock_);
    free_all(arenas_.take_all());
    for (DeviceBlock*& list : free_) {
      if (list) chains.push_back(std::exchange(list, nullptr));
    }
    bytes = std::exchange(usage_.cached, 0);
  }
  if (chains.empty()) return;
  try {
    device_.finish();
  } catch (...) {
    std::lock_guard guard(lock_);
    for (DeviceBlock* block : chains) free_all(block);
    usage_.cached += bytes;
    throw;
  }
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

void DevicePool::set_arena_limit(int64_t bytes) {
  std::lock_guard guard(lock_);
  arenas_.set_limit(bytes);
  free_all(arenas_.take_surplus());
}

int64_t DevicePool::made() { return blocks_made.load(std::memory_order_relaxed); }

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
