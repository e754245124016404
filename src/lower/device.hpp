// What a device offers to the runtime: it prepares a layout once and runs it many times.
#pragma once

#include <memory>

#include "graph/leaf.hpp"
#include "lower/layout.hpp"

namespace rosin::lower {

/// One prepared execution of a layout, with its own arena: used by one thread at a time.
class Instance {
 public:
  virtual ~Instance() = default;
  /// `memory[v]` is the memory of value v where it is a leaf or an output, `scalars[v]` its value where it is a scalar.
  /// Throws what a kernel throws; donated memory is written last.
  virtual void run(void* const* memory, const ScalarValue* scalars) = 0;
  virtual size_t bytes() const = 0;
};

class DeviceExecutor {
 public:
  virtual ~DeviceExecutor() = default;
  virtual Target target() const = 0;
  /// Does all that can fail before a launch: compiles, prepares vendor calls, reserves memory.
  virtual std::unique_ptr<Instance> prepare(std::shared_ptr<const Layout> layout) = 0;
};

/// The built-in device; the cpu room installs it.
extern DeviceExecutor* cpu_executor;

}  // namespace rosin::lower
