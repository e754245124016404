// DeviceTable: all devices of the process by position (0 is the CPU), and the plug-ins that they belong to. Plug-ins
// are loaded when they are asked for, devices opened when something is done on them.
// Read first: plugin.hpp, open_device.hpp. Read next: device.cpp (the public functions).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device_executor.hpp"
#include "runtime/plugin.hpp"

namespace rosin {

class DeviceTable {
 public:
  static DeviceTable& instance();

  /// The plug-in of a back end (its canonical name): loaded now if it was not, or null where that is switched off and
  /// `use` did not ask for it.
  const Plugin* plugin(std::string_view backend);
  /// Loads it, whatever the preference says.
  const Plugin& use(std::string_view backend);

  /// The position of a device, or -1 where the back end has no such device.
  int position(std::string_view backend, int id);
  /// Of the device at a position other than 0.
  std::string_view backend_of(int position);
  int id_of(int position);
  const rosin_device_info& info_of(int position);
  /// "CUDA:0"
  std::string text_of(int position);

  /// The device, opened. Error (device) where that fails.
  OpenDevice& open(int position);
  lower::DeviceExecutor& executor(int position);

 private:
  struct Row {
    const Plugin* plugin;
    int id;
    rosin_device_info info;
    std::unique_ptr<OpenDevice> open;
    std::unique_ptr<PluginExecutor> executor;
  };

  const Plugin* find(std::string_view backend) const;
  const Plugin& load(std::string_view backend);
  Row& row(int position);

  std::mutex lock_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::vector<std::unique_ptr<Row>> rows_;  // position - 1
};

}  // namespace rosin
