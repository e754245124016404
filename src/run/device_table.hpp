// DeviceTable: the devices of the process by position: the CPU at 0, then those of plug-ins in the order in which they
// were added. A device is opened when something is done on it. Positions are for ever, rows are never taken out.
// Read first: open_device.hpp. Read next: devices/plugin_table.hpp (who adds them).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "graph/hooks.hpp"
#include "run/device_executor.hpp"

namespace rosin {

class DeviceTable {
 public:
  static DeviceTable& instance();

  /// What a plug-in says of one of its devices.
  struct Entry {
    std::string backend;  // "CUDA"
    const rosin_backend* functions = nullptr;
    int id = 0;
    rosin_device_info info{};
  };
  /// The position of the device from now on; -1 where there are as many devices as can be told apart.
  int add(Entry entry);

  /// Of the device at a position other than 0.
  std::string_view backend_of(int position);
  int id_of(int position);
  const rosin_device_info& info_of(int position);

  /// The device, opened. Error (device) where that fails.
  OpenDevice& open(int position);
  plan::DeviceExecutor& executor(int position);
  /// Makes this the executor of the CPU: the start of the process does, and tests that look at plans.
  void set_cpu(plan::DeviceExecutor& executor) { cpu_ = &executor; }

 private:
  struct Row {
    Entry entry;
    std::unique_ptr<OpenDevice> open;
    std::unique_ptr<PluginExecutor> executor;
  };

  Row& row(int position);

  plan::DeviceExecutor* cpu_ = nullptr;
  std::mutex lock_;
  std::vector<std::unique_ptr<Row>> rows_;  // position - 1
};

/// See Hooks.
Memory* allocate_memory(const MemoryRequest& request);

}  // namespace rosin
