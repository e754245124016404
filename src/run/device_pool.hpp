// DevicePool: memory of arrays and of runs on one device. Freed blocks wait in lists by size class and are given out
// again at once, with the tickets of the work that may still use them: whoever writes such a block orders his stream
// behind them first (DeviceStream::order_to_write), which costs nothing where that is the stream of its last user.
// Read next: open_device.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include <rosin/backend.h>

#include "graph/memory.hpp"
#include "run/idle_arenas.hpp"
#include "run/size_class.hpp"
#include "run/stream.hpp"

namespace rosin {

class DevicePool;
class OpenDevice;

/// A block of device memory; `data` is the rosin_memory.
struct DeviceBlock : Memory {
  DevicePool* pool = nullptr;
  int size_class = 0;
  bool is_arena = false;
  DeviceBlock* previous = nullptr;  // in the list of live or of free blocks
  DeviceBlock* next = nullptr;
  std::string label;                            // path of the parameter in a model that was moved, or empty
  std::atomic<Ticket> made_by;                  // the run whose result it is; see index_flags.hpp
  std::atomic<Ticket> uses[stream_kinds] = {};  // by kind of stream: the last work that reads or writes it
};

class DevicePool {
 public:
  /// `index`: the device's position among all.
  DevicePool(OpenDevice& device, int index, uint64_t largest_block) noexcept;

  /// At least `bytes`; Error (memory) when the device has none left, after all free blocks were given back.
  /// `preferred`: this block, where it is one of the free ones used last.
  DeviceBlock* allocate(size_t bytes, const Memory* preferred = nullptr);
  /// The same for a run; when it is released, it waits for the next run.
  DeviceBlock* borrow(size_t bytes, const Memory* preferred = nullptr);
  /// Gives free blocks back to the device, when its work has ended.
  void trim();
  /// Bytes that live and free blocks may take together; 0: no limit but the device's.
  void set_limit(int64_t bytes);
  /// Bytes of idle arenas that are kept; those beyond it become free blocks.
  void set_arena_limit(int64_t bytes);

  struct Usage {
    int64_t live = 0, cached = 0, peak = 0, limit = 0;
  };
  /// Blocks that the devices of the process have made so far.
  static int64_t made();
  Usage usage();

 private:
  DeviceBlock* take(int size_class, const Memory* preferred);
  DeviceBlock* take_arena(size_t bytes, size_t most, const Memory* preferred);
  DeviceBlock* make(int size_class);
  DeviceBlock* make_after_trim(size_t bytes);
  void count_taken(DeviceBlock* block);
  void free_all(DeviceBlock* block) noexcept;
  void put(DeviceBlock* block) noexcept;
  void list_live(DeviceBlock* block);
  void destroy(DeviceBlock* block) noexcept;
  [[noreturn]] void throw_out_of_memory(size_t bytes);

  static const MemoryOperations operations;

  OpenDevice& device_;
  int index_;
  uint64_t largest_block_;
  std::mutex lock_;
  DeviceBlock* free_[size_class_count] = {};
  IdleArenas<DeviceBlock> arenas_;
  DeviceBlock* live_list_ = nullptr;
  Usage usage_;
};

}  // namespace rosin
