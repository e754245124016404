// A buffer and its header are one block. Blocks come in classes of four sizes to the doubling; free ones wait in a
// list for each class, up to a bound of bytes.
#include "runtime/buffer_pool.hpp"

#include <mutex>
#include <new>
#include <string>

#include <rosin/error.hpp>

#include "runtime/size_class.hpp"

namespace rosin {
namespace {

constexpr size_t header_bytes = 64;
constexpr int64_t pool_limit = int64_t{1} << 30;

struct PooledBuffer : Memory {
  int size_class = 0;
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
    const size_t size = bytes_of_size_class(size_class);
    void* block = ::operator new(header_bytes + size, std::align_val_t{64}, std::nothrow);
    if (!block) {
      trim();
      block = ::operator new(header_bytes + size, std::align_val_t{64}, std::nothrow);
    }
    if (!block) throw_out_of_memory(bytes);
    auto* buffer = new (block) PooledBuffer;
    buffer->data = static_cast<unsigned char*>(block) + header_bytes;
    buffer->bytes = size;
    buffer->size_class = size_class;
    buffer->release = [](Memory* self) noexcept { instance().put(static_cast<PooledBuffer*>(self)); };
    std::lock_guard lock(lock_);
    live_ += static_cast<int64_t>(size);
    return buffer;
  }

  void trim() {
    {
      std::lock_guard lock(lock_);
      collect();
    }
    for (PooledBuffer*& list : free_) {
      PooledBuffer* chain = nullptr;
      {
        std::lock_guard lock(lock_);
        std::swap(chain, list);
        for (PooledBuffer* b = chain; b; b = b->next) pooled_ -= static_cast<int64_t>(b->bytes);
      }
      while (chain) {
        PooledBuffer* next = chain->next;
        destroy(chain);
        chain = next;
      }
    }
  }

  int64_t live() {
    std::lock_guard lock(lock_);
    return live_;
  }
  int64_t pooled() {
    std::lock_guard lock(lock_);
    return pooled_;
  }

 private:
  PooledBuffer* take(int size_class) {
    std::lock_guard lock(lock_);
    collect();
    PooledBuffer*& list = free_[size_class];
    PooledBuffer* buffer = list;
    if (!buffer) return nullptr;
    list = buffer->next;
    buffer->owners.store(1, std::memory_order_relaxed);
    pooled_ -= static_cast<int64_t>(buffer->bytes);
    live_ += static_cast<int64_t>(buffer->bytes);
    return buffer;
  }

  void put(PooledBuffer* buffer) noexcept {
    const int64_t bytes = static_cast<int64_t>(buffer->bytes);
    {
      std::lock_guard lock(lock_);
      live_ -= bytes;
      const bool in_use = !is_over(buffer->used_by);
      if (in_use || pooled_ + bytes <= pool_limit) {
        pooled_ += bytes;
        push(in_use ? in_use_ : free_[buffer->size_class], buffer);
        return;
      }
    }
    destroy(buffer);
  }

  static void push(PooledBuffer*& list, PooledBuffer* buffer) noexcept {
    buffer->next = list;
    list = buffer;
  }

  /// Buffers whose last run is over are free. (The run at the head is the latest one.)
  void collect() noexcept {
    if (!in_use_ || !is_over(in_use_->used_by)) return;
    while (PooledBuffer* buffer = in_use_) {
      in_use_ = buffer->next;
      push(free_[buffer->size_class], buffer);
    }
  }

  static void destroy(PooledBuffer* buffer) noexcept {
    buffer->~PooledBuffer();
    ::operator delete(static_cast<void*>(buffer), std::align_val_t{64});
  }

  [[noreturn]] void throw_out_of_memory(size_t bytes) {
    throw Error(ErrorKind::memory, "allocate: out of memory on CPU; requested " + std::to_string(bytes) +
                                       " bytes, live " + std::to_string(live()) + ", cached " +
                                       std::to_string(pooled()) +
                                       "; use a smaller batch or drop arrays that are no longer needed");
  }

  std::mutex lock_;
  PooledBuffer* free_[size_class_count] = {};
  PooledBuffer* in_use_ = nullptr;  // given back while a run behind its thread still uses them
  int64_t live_ = 0;
  int64_t pooled_ = 0;
};

}  // namespace

Memory* allocate_buffer(size_t bytes) { return Pool::instance().allocate(bytes); }
int64_t live_buffer_bytes() { return Pool::instance().live(); }
int64_t pooled_buffer_bytes() { return Pool::instance().pooled(); }
void trim_buffers() { Pool::instance().trim(); }

}  // namespace rosin
