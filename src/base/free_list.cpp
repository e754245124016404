// Free lists: blocks in classes of sizes, each thread with lists of its own and one reserve for all.
#include <rosin/free_list.hpp>

#include <array>
#include <bit>
#include <mutex>
#include <new>

namespace rosin {
namespace {

struct Block {
  Block* next;
};

constexpr size_t smallest = 32, largest = 4096;
constexpr size_t classes = 8;  // 32, 64, ..., 4096
// A thread that gives more than it takes (another one copies the models) passes its surplus on.
constexpr int kept_per_class = 1024;

size_t class_of(size_t bytes) {
  return bytes <= smallest ? 0 : static_cast<size_t>(std::bit_width((bytes - 1) / smallest));
}

struct Lists {
  std::array<Block*, classes> first{};
  std::array<int, classes> count{};
};

struct Reserve {
  std::mutex lock;
  Lists lists;
};
// Never destroyed: models at namespace scope are destroyed late.
Reserve& reserve() {
  static Reserve* all = new Reserve;
  return *all;
}

Block* taken(Lists& lists, size_t which) noexcept {
  Block* block = lists.first[which];
  if (block) {
    lists.first[which] = block->next;
    --lists.count[which];
  }
  return block;
}

void put(Lists& lists, size_t which, Block* block) noexcept {
  block->next = lists.first[which];
  lists.first[which] = block;
  ++lists.count[which];
}

constinit thread_local Lists own;
constinit thread_local bool closed = false;

/// Hands a thread's blocks to the reserve when it ends; later ones (thread-local models) go there directly.
struct Closer {
  bool watching = false;
  ~Closer() {
    closed = true;
    const std::lock_guard hold(reserve().lock);
    for (size_t which = 0; which < classes; ++which) {
      while (Block* block = taken(own, which)) put(reserve().lists, which, block);
    }
  }
};
thread_local Closer closer;

Block* from_reserve(size_t which) {
  const std::lock_guard hold(reserve().lock);
  return taken(reserve().lists, which);
}

}  // namespace

void* detail::take_block(size_t bytes) {
  if (bytes > largest) return ::operator new(bytes);
  const size_t which = class_of(bytes);
  if (!closed) {
    if (Block* block = taken(own, which)) return block;
    closer.watching = true;
  }
  if (Block* block = from_reserve(which)) return block;
  return ::operator new(smallest << which);
}

void detail::give_block(void* block, size_t bytes) noexcept {
  if (bytes > largest) return ::operator delete(block);
  const size_t which = class_of(bytes);
  Block* free = ::new (block) Block{nullptr};
  if (!closed && own.count[which] < kept_per_class) {
    closer.watching = true;
    return put(own, which, free);
  }
  const std::lock_guard hold(reserve().lock);
  put(reserve().lists, which, free);
}

}  // namespace rosin
