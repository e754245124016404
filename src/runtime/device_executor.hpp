// DeviceExecutor of plug-ins: a layout becomes launches on the device's stream.
// Read first: lower/device.hpp, lower/launches.hpp, open_device.hpp.
#pragma once

#include <memory>

#include "lower/device.hpp"
#include "runtime/open_device.hpp"

namespace rosin {

class PluginExecutor final : public lower::DeviceExecutor {
 public:
  explicit PluginExecutor(OpenDevice& device) : device_(device) {}
  lower::Target target() const override;
  std::unique_ptr<lower::Instance> prepare(std::shared_ptr<const lower::Layout> layout) override;
  Memory* allocate(size_t bytes) override { return device_.pool.allocate(bytes); }
  void expect(Memory& memory) override;

 private:
  OpenDevice& device_;
};

/// Launches given to devices since the start of the process.
int64_t device_launches();

}  // namespace rosin
