// See devices.hpp.
#include "runtime/devices.hpp"

#include <limits>

#include <rosin/error.hpp>

#include "runtime/preferences.hpp"

namespace rosin {
namespace {

constexpr size_t most_devices = std::numeric_limits<uint8_t>::max();  // positions stand in a byte of each node

}  // namespace

DeviceTable& DeviceTable::instance() {
  static auto* table = new DeviceTable;  // never destroyed: arrays at namespace scope outlive it otherwise
  return *table;
}

const Plugin* DeviceTable::find(std::string_view backend) const {
  for (const auto& plugin : plugins_) {
    if (plugin->backend == backend) return plugin.get();
  }
  return nullptr;
}

/// Holds the lock. The devices of a plug-in get their positions in the order in which plug-ins are loaded.
const Plugin& DeviceTable::load(std::string_view backend) {
  auto plugin = std::make_unique<Plugin>(load_plugin(backend));
  for (int id = 0; id < plugin->device_count && rows_.size() < most_devices; ++id) {
    auto row = std::make_unique<Row>();
    row->plugin = plugin.get();
    row->id = id;
    row->info.size = sizeof row->info;
    if (plugin->functions->device_info(id, &row->info) != ROSIN_OK) {
      plugin->reason = "device " + std::to_string(id) + " says nothing of itself: " + plugin->functions->error_text();
      plugin->device_count = id;
      break;
    }
    rows_.push_back(std::move(row));
  }
  plugins_.push_back(std::move(plugin));
  return *plugins_.back();
}

const Plugin* DeviceTable::plugin(std::string_view backend) {
  const bool autoload = autoload_preference();
  std::lock_guard guard(lock_);
  if (const Plugin* found = find(backend)) return found;
  return autoload ? &load(backend) : nullptr;
}

const Plugin& DeviceTable::use(std::string_view backend) {
  std::lock_guard guard(lock_);
  const Plugin* found = find(backend);
  return found ? *found : load(backend);
}

int DeviceTable::position(std::string_view backend, int id) {
  std::lock_guard guard(lock_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i]->plugin->backend == backend && rows_[i]->id == id) return static_cast<int>(i) + 1;
  }
  return -1;
}

DeviceTable::Row& DeviceTable::row(int position) {
  std::lock_guard guard(lock_);
  return *rows_[static_cast<size_t>(position) - 1];
}

std::string_view DeviceTable::backend_of(int position) { return row(position).plugin->backend; }
int DeviceTable::id_of(int position) { return row(position).id; }
const rosin_device_info& DeviceTable::info_of(int position) { return row(position).info; }

std::string DeviceTable::text_of(int position) {
  return std::string(backend_of(position)) + ":" + std::to_string(id_of(position));
}

OpenDevice& DeviceTable::open(int position) {
  Row& found = row(position);
  std::string name = text_of(position);
  std::lock_guard guard(lock_);
  if (!found.open) {
    auto opened = std::make_unique<OpenDevice>(*found.plugin->functions, found.id, std::move(name), position);
    found.executor = std::make_unique<PluginExecutor>(*opened);
    found.open = std::move(opened);
  }
  return *found.open;
}

lower::DeviceExecutor& DeviceTable::executor(int position) {
  if (position == 0) return *lower::cpu_executor;
  open(position);
  return *row(position).executor;
}

}  // namespace rosin
