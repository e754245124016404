// What a device offers to those who run plans: it prepares a layout once and runs it many times.
#pragma once

#include <atomic>
#include <memory>

#include "graph/leaf.hpp"
#include "plan/layout.hpp"

namespace rosin::plan {

/// One prepared execution of a layout, with its own arena: used by one thread at a time.
class Instance {
 public:
  virtual ~Instance() = default;
  /// `memory[v]` is the memory of value v where it is a leaf or an output. Numbers stand at scalar_index.
  /// Throws what a kernel throws; donated memory is written last.
  virtual void run(void* const* memory, const ScalarValue* scalars) = 0;
  virtual size_t bytes() const = 0;
  /// Takes the arena, which a run needs. Error (memory) when the device has none left.
  virtual void furnish() {}
  /// Gives the arena back until the next run.
  virtual void strip() noexcept {}
  /// Whether a run takes one thread of the CPU only, and cannot fail: it may go on behind the thread that asks for it.
  virtual bool may_run_behind() const { return false; }

  // For the plan cache.
  bool furnished = false;
  size_t counted = 0;  // bytes that the cache counts for it
};

class DeviceExecutor {
 public:
  virtual ~DeviceExecutor() = default;
  /// Of the device; asked from any thread.
  virtual const Target& target() const = 0;
  /// Does all that can fail before a launch: compiles, prepares vendor calls, reserves memory.
  virtual std::unique_ptr<Instance> prepare(std::shared_ptr<const Layout> layout) = 0;
  /// Memory for an array; Error (memory) when the device has none left.
  virtual Memory* allocate(size_t bytes) = 0;
  /// The next run reads this memory, which may still be on its way to the device.
  virtual void expect(Memory&) {}
};

/// Bytes of the CPU's memory that instances hold.
extern std::atomic<int64_t> arena_bytes_of_cpu;

/// The built-in device; the cpu room installs it.
extern DeviceExecutor* cpu_executor;

}  // namespace rosin::plan
