// A buffer and its header are one block. Blocks come in classes of four sizes to the doubling; free ones wait in a
// list for each class. Beyond a bound of bytes those go that the last steps had no use for. Arenas wait in a list of
// their own (idle_arenas.hpp), and in those lists when they are too many.
#include "run/buffer_pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "base/environment.hpp"
#include "graph/packed_forms.hpp"
#include "platform/processor.hpp"
#include "run/idle_arenas.hpp"
#include "run/memory_text.hpp"
#include "run/size_class.hpp"
#include "run/stream.hpp"

namespace rosin {
namespace {

constexpr size_t header_bytes = 64;
constexpr int64_t usual_pooled = int64_t{256} << 20;  // beyond it, buffers that are not used for a while go
constexpr int64_t most_pooled = int64_t{1} << 30;
constexpr uint32_t steps_of_a_while = 8;

std::atomic<uint32_t> steps{0};

struct PooledBuffer : Memory {
  uint8_t size_class = 0;
  bool is_arena = false;
  PooledBuffer* next = nullptr;
};
static_assert(sizeof(PooledBuffer) <= header_bytes);

class Pool {
 public:
  static Pool& instance() {
    static Pool* pool = new Pool;  // never destroyed: globals of the user outlive it otherwise
    return *pool;
  }

  Memory* allocate(size_t bytes) {
    const int size_class = size_class_of(bytes);
    if (PooledBuffer* found = take(size_class)) return found;
    if (PooledBuffer* made = make(size_class)) return made;
    return make_after_trim(bytes);
  }

  Memory* borrow(size_t bytes) {
    const int size_class = size_class_of(bytes);
    const size_t size = bytes_of_size_class(size_class);
    if (PooledBuffer* found = take_arena(size, most_for_arena(size))) return found;
    PooledBuffer* made = take(size_class);
    if (!made) made = make(size_class);
    if (!made) {
      if (PooledBuffer* found = take_arena(size, Arenas::any)) return found;
      made = make_after_trim(bytes);
    }
    made->is_arena = true;
    std::lock_guard lock(lock_);
    usage_.borrowed += static_cast<int64_t>(made->bytes);
    return made;
  }

  void trim() {
    {
      std::lock_guard lock(lock_);
      collect();
      free_all(arenas_.take_all());
    }
    for (FreeList& list : free_) {
      PooledBuffer* chain = nullptr;
      {
        std::lock_guard lock(lock_);
        chain = take_first(list, list.count);
      }
      destroy_all(chain);
    }
  }

  BufferUsage usage() {
    std::lock_guard lock(lock_);
    BufferUsage now = usage_;
    now.arenas = arenas_.bytes();
    return now;
  }
  void set_limit(int64_t bytes) {
    std::lock_guard lock(lock_);
    usage_.limit = bytes;
  }
  void set_arena_limit(int64_t bytes) {
    std::lock_guard lock(lock_);
    arenas_.set_limit(bytes);
    free_all(arenas_.take_surplus());
  }

 private:
  using Arenas = IdleArenas<PooledBuffer>;

  struct FreeList {
    PooledBuffer* first = nullptr;
    int64_t count = 0;
    int64_t least = 0;  // the fewest that were here since the last look: so many had no use
  };

  PooledBuffer* take(int size_class) {
    std::lock_guard lock(lock_);
    collect();
    FreeList& list = free_[size_class];
    PooledBuffer* buffer = list.first;
    if (!buffer) return nullptr;
    list.first = buffer->next;
    list.least = std::min(list.least, --list.count);
    count_taken(buffer);
    return buffer;
  }

  PooledBuffer* take_arena(size_t bytes, size_t most) {
    std::lock_guard lock(lock_);
    collect();
    PooledBuffer* arena = arenas_.take(bytes, most);
    if (!arena) return nullptr;
    count_taken(arena);
    usage_.borrowed += static_cast<int64_t>(arena->bytes);
    return arena;
  }

  /// It was free. Holds the lock.
  void count_taken(PooledBuffer* buffer) {
    buffer->owners.store(1, std::memory_order_relaxed);
    usage_.pooled -= static_cast<int64_t>(buffer->bytes);
    usage_.live += static_cast<int64_t>(buffer->bytes);
    usage_.peak = std::max(usage_.peak, usage_.live);
  }

  /// Where there is room only without what is free.
  PooledBuffer* make_after_trim(size_t bytes) {
    PackedForms::instance().trim();
    trim();
    if (PooledBuffer* made = make(size_class_of(bytes))) return made;
    throw_no_memory("allocate", static_cast<int64_t>(std::min(bytes, most_bytes)));
  }

  /// Whether the system is asked for them. Touching many small ones takes long, but so do large ones that a virtual
  /// machine has to get from its host first.
  static bool large_pages() {
    static const bool wanted = environment_switch(Setting::large_pages).value_or(false);
    return wanted;
  }

  /// A buffer that the system gives; null where it does not, or the limit is in the way.
  PooledBuffer* make(int size_class) {
    const size_t size = bytes_of_size_class(size_class);
    {
      std::lock_guard lock(lock_);
      const int64_t all = usage_.live + usage_.pooled;
      if (size > most_bytes || (usage_.limit > 0 && all + static_cast<int64_t>(size) > usage_.limit)) return nullptr;
      if (size >= large_bytes && all + static_cast<int64_t>(size) > machine_bytes()) return nullptr;
      usage_.live += static_cast<int64_t>(size);
    }
    void* block = ::operator new(header_bytes + size, std::align_val_t{64}, std::nothrow);
    {
      std::lock_guard lock(lock_);
      if (!block) usage_.live -= static_cast<int64_t>(size);
      else ++usage_.made;
      usage_.peak = std::max(usage_.peak, usage_.live);
    }
    if (!block) return nullptr;
    if (size >= worth_large_pages && large_pages()) platform::prefer_large_pages(block, header_bytes + size);
    auto* buffer = new (block) PooledBuffer;
    buffer->data = static_cast<unsigned char*>(block) + header_bytes;
    buffer->bytes = size;
    buffer->size_class = static_cast<uint8_t>(size_class);
    buffer->operations = &operations;
    return buffer;
  }

  void put(PooledBuffer* buffer) noexcept {
    PackedForms::forget(*buffer);
    const int64_t bytes = static_cast<int64_t>(buffer->bytes);
    PooledBuffer* surplus = nullptr;
    {
      std::lock_guard lock(lock_);
      usage_.live -= bytes;
      if (buffer->is_arena) usage_.borrowed -= bytes;
      const bool in_use = !is_over(buffer->used_by);
      if (in_use || buffer->is_arena || pooled_for_arrays() + bytes <= most_pooled) {
        usage_.pooled += bytes;
        if (in_use) push(in_use_, buffer);
        else put_aside(buffer);
        if (pooled_for_arrays() > usual_pooled) surplus = take_surplus();
      } else {
        buffer->next = nullptr;
        surplus = buffer;
      }
    }
    destroy_all(surplus);
  }

  static void push(PooledBuffer*& list, PooledBuffer* buffer) noexcept {
    buffer->next = list;
    list = buffer;
  }
  void push_free(PooledBuffer* buffer) noexcept {
    FreeList& list = free_[buffer->size_class];
    push(list.first, buffer);
    ++list.count;
  }

  /// Nothing uses it any more: an arena waits for the next run, other buffers for the next array. Holds the lock.
  void put_aside(PooledBuffer* buffer) noexcept {
    if (!buffer->is_arena) return push_free(buffer);
    arenas_.put(buffer);
    free_all(arenas_.take_surplus());
  }

  /// These were arenas. Holds the lock.
  void free_all(PooledBuffer* arena) noexcept {
    while (arena) {
      PooledBuffer* next = arena->next;
      arena->is_arena = false;
      push_free(arena);
      arena = next;
    }
  }

  int64_t pooled_for_arrays() const { return usage_.pooled - arenas_.bytes(); }

  /// The first so many of a list, which leave it. Holds the lock.
  PooledBuffer* take_first(FreeList& list, int64_t count) noexcept {
    PooledBuffer* taken = nullptr;
    for (; count > 0; --count, --list.count) {
      PooledBuffer* buffer = list.first;
      list.first = buffer->next;
      usage_.pooled -= static_cast<int64_t>(buffer->bytes);
      push(taken, buffer);
    }
    list.least = std::min(list.least, list.count);
    return taken;
  }

  /// What the steps since the last look had no use for, the largest first, as far as it is too much. Holds the lock.
  PooledBuffer* take_surplus() noexcept {
    const uint32_t now = steps.load(std::memory_order_relaxed);
    if (now - looked_at_ < steps_of_a_while) return nullptr;
    looked_at_ = now;
    PooledBuffer* surplus = nullptr;
    for (int i = size_class_count; i-- > 0;) {
      FreeList& list = free_[i];
      for (; list.least > 0 && pooled_for_arrays() > usual_pooled; --list.least) push(surplus, take_first(list, 1));
      list.least = list.count;
    }
    return surplus;
  }

  /// Buffers whose last run is over are free. (The run at the head is the latest one.)
  void collect() noexcept {
    if (!in_use_ || !is_over(in_use_->used_by)) return;
    while (PooledBuffer* buffer = in_use_) {
      in_use_ = buffer->next;
      put_aside(buffer);
    }
  }

  static void destroy_all(PooledBuffer* buffer) noexcept {
    while (buffer) destroy(std::exchange(buffer, buffer->next));
  }

  static void destroy(PooledBuffer* buffer) noexcept {
    buffer->~PooledBuffer();
    ::operator delete(static_cast<void*>(buffer), std::align_val_t{64});
  }

  /// What the machine, or the container, has: more would not fail here, but end the process when it is used.
  static int64_t machine_bytes() {
    static const int64_t bytes = platform::memory_bytes();
    return bytes;
  }

  static void give_back(Memory* self) noexcept { instance().put(static_cast<PooledBuffer*>(self)); }
  static void wait_for_writer(const Memory& self) {
    const Ticket writer = self.written_by.load(std::memory_order_relaxed);
    Stream::of(writer).wait(writer);
  }

  static constexpr MemoryOperations operations{.release = give_back, .wait = wait_for_writer};
  static constexpr size_t most_bytes = size_t{1} << 62;
  static constexpr size_t large_bytes = size_t{1} << 26, worth_large_pages = size_t{1} << 23;

  std::mutex lock_;
  FreeList free_[size_class_count];
  Arenas arenas_;
  PooledBuffer* in_use_ = nullptr;  // given back while a run behind its thread still uses them
  uint32_t looked_at_ = 0;
  BufferUsage usage_;
};

}  // namespace

void throw_no_memory(const std::string& what, int64_t bytes) {
  const BufferUsage usage = buffer_usage();
  std::string text = what + ": out of memory on CPU; ";
  if (bytes != unknown_bytes) text += "requested " + mebibytes(bytes) + ", ";
  text += "live " + mebibytes(usage.live) + ", cached " + mebibytes(usage.pooled) + ", the machine has " +
          mebibytes(platform::memory_bytes());
  if (usage.limit > 0) text += ", limit " + mebibytes(usage.limit);
  throw Error(ErrorKind::memory, text + "; use a smaller batch or drop arrays that are no longer needed");
}

Memory* allocate_buffer(size_t bytes) { return Pool::instance().allocate(bytes); }
Memory* borrow_arena(size_t bytes) { return Pool::instance().borrow(bytes); }
BufferUsage buffer_usage() { return Pool::instance().usage(); }
void set_buffer_limit(int64_t bytes) { Pool::instance().set_limit(bytes); }
void set_arena_limit_of_cpu(int64_t bytes) { Pool::instance().set_arena_limit(bytes); }
void count_step() noexcept { steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
void trim_buffers() {
  PackedForms::instance().trim();
  Pool::instance().trim();
}

}  // namespace rosin
