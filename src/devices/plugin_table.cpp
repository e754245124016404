// See plugin_table.hpp.
#include "devices/plugin_table.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/nearest.hpp"
#include "devices/backends.hpp"
#include "devices/preferences.hpp"
#include "run/device_table.hpp"

namespace rosin {
namespace {

/// The devices of a plug-in get their positions in the order in which plug-ins are loaded.
void add_devices(Plugin& plugin) {
  plugin.backend = backend_as_loaded(plugin.functions->name).name;
  int count = 0;
  plugin.reason = count_devices(*plugin.functions, count);
  for (int id = 0; id < count; ++id) {
    DeviceTable::Entry entry{.backend = plugin.backend, .functions = plugin.functions, .id = id};
    entry.info.size = sizeof entry.info;
    if (plugin.functions->device_info(id, &entry.info) != ROSIN_OK) {
      plugin.reason = "device " + std::to_string(id) + " says nothing of itself: " + plugin.functions->error_text();
      return;
    }
    const int position = DeviceTable::instance().add(std::move(entry));
    if (position < 0) {
      if (plugin.positions.empty()) plugin.reason = "there are more devices than rosin can tell apart";
      return;
    }
    plugin.positions.push_back(position);
  }
}

}  // namespace

PluginTable& PluginTable::instance() {
  static auto* table = new PluginTable;  // never destroyed: arrays at namespace scope outlive it otherwise
  return *table;
}

const Plugin* PluginTable::find(std::string_view backend) const {
  for (const auto& plugin : plugins_) {
    if (equal_without_case(plugin->backend, backend)) return plugin.get();
  }
  return nullptr;
}

/// Holds the lock.
const Plugin& PluginTable::load(std::string_view backend) {
  auto plugin = std::make_unique<Plugin>(load_plugin(backend));
  if (plugin->functions) add_devices(*plugin);
  plugins_.push_back(std::move(plugin));
  return *plugins_.back();
}

const Plugin* PluginTable::plugin(std::string_view backend) {
  const bool autoload = autoload_preference();
  std::lock_guard guard(lock_);
  if (const Plugin* found = find(backend)) return found;
  return autoload ? &load(backend) : nullptr;
}

const Plugin& PluginTable::use(std::string_view backend) {
  std::lock_guard guard(lock_);
  const Plugin* found = find(backend);
  return found ? *found : load(backend);
}

const std::vector<Capability>& PluginTable::capabilities(const Plugin& plugin) {
  std::lock_guard guard(lock_);
  const auto known =
      std::find_if(plugins_.begin(), plugins_.end(), [&](const auto& one) { return one.get() == &plugin; });
  std::optional<std::vector<Capability>>& found = (*known)->capabilities;
  if (!found)
    found = plugin.functions && plugin.reason.empty() ? capabilities_of(*plugin.functions) : std::vector<Capability>();
  return *found;
}

}  // namespace rosin
