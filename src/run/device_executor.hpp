// DeviceExecutor of plug-ins: a layout becomes launches on the device's compute stream.
// Read first: plan/device.hpp, kernels/launches.hpp, open_device.hpp.
#pragma once

#include <memory>

#include "plan/device.hpp"
#include "run/library_call.hpp"
#include "run/open_device.hpp"

namespace rosin {

class PluginExecutor final : public plan::DeviceExecutor {
 public:
  explicit PluginExecutor(OpenDevice& device) : device_(device), target_(device) {}
  const plan::Target& target() const override { return target_; }
  std::shared_ptr<plan::Compiled> compile(std::shared_ptr<const plan::Structure> structure) override;
  std::unique_ptr<const plan::Prepared> prepare(plan::Compiled& compiled,
                                                std::shared_ptr<const plan::Layout> layout) override;
  Memory* allocate(size_t bytes) override { return device_.pool.allocate(bytes); }
  Memory* allocate(size_t bytes, plan::MemorySlot& slot) override {
    Memory* block = device_.pool.allocate(bytes, slot.last.load(std::memory_order_relaxed));
    slot.last.store(block, std::memory_order_relaxed);
    return block;
  }

 private:
  OpenDevice& device_;
  PluginTarget target_;
};

/// Launches given to devices since the start of the process.
int64_t device_launches();

}  // namespace rosin
