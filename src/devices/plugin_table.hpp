// PluginTable: the plug-ins of the process, loaded when they are asked for. The devices of a plug-in join the table of
// all devices (run/device_table.hpp) when it is loaded.
// Read first: plugin.hpp. Read next: device.cpp (the public functions).
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "devices/plugin.hpp"

namespace rosin {

class PluginTable {
 public:
  static PluginTable& instance();

  /// The plug-in of a back end: loaded now if it was not, or null where that is switched off and
  /// `use` did not ask for it.
  const Plugin* plugin(std::string_view backend);
  /// Loads it, whatever the preference says.
  const Plugin& use(std::string_view backend);
  /// What a plug-in with devices found beside its driver. It may try its libraries out, which takes a moment: it is
  /// asked when somebody wants to know, once.
  const std::vector<Capability>& capabilities(const Plugin& plugin);

 private:
  const Plugin* find(std::string_view backend) const;
  const Plugin& load(std::string_view backend);

  std::mutex lock_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
};

}  // namespace rosin
