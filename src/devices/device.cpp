// Devices as values: what they are, what there is, what runs on one. Read next: device_choice.cpp (choosing),
// run/device_table.hpp (the table behind them).
#include <rosin/device.hpp>

#include <algorithm>

#include <rosin/array.hpp>
#include <rosin/array_options.hpp>
#include <rosin/error.hpp>

#include "base/environment.hpp"
#include "base/nearest.hpp"
#include "devices/backends.hpp"
#include "devices/plugin_table.hpp"
#include "graph/node.hpp"
#include "platform/processor.hpp"
#include "run/buffer_pool.hpp"
#include "run/device_table.hpp"

namespace rosin {
namespace {

DeviceTable& table() { return DeviceTable::instance(); }
PluginTable& plugins() { return PluginTable::instance(); }

/// The name of a back end, as it calls itself where it is loaded.
std::string spelled(const BackendName& backend) { return find_backend(backend.name)->name; }

/// The devices of a back end other than the CPU; `by_itself`: only those that may be chosen without being named.
std::vector<Device> devices_of(const BackendName& backend, bool by_itself) {
  std::vector<Device> found;
  const Plugin* plugin = plugins().plugin(backend.name);
  if (!plugin || !plugin->reason.empty()) return found;
  const bool takes_cpu = backend.name == "OpenCL" && environment_switch(Setting::opencl_cpu).value_or(false);
  for (const int position : plugin->positions) {
    const Device device = Device::at_position(position);
    if (!by_itself || device.is_gpu() || takes_cpu) found.push_back(device);
  }
  return found;
}

}  // namespace

std::string_view Device::backend() const noexcept { return position_ == 0 ? "CPU" : table().backend_of(position_); }
int Device::id() const noexcept { return position_ == 0 ? 0 : table().id_of(position_); }
std::string Device::name() const {
  return position_ == 0 ? platform::processor_name() : table().info_of(position_).name;
}

int64_t Device::memory() const {
  return position_ == 0 ? platform::memory_bytes() : static_cast<int64_t>(table().info_of(position_).memory);
}

bool Device::is_gpu() const noexcept { return position_ != 0 && table().info_of(position_).kind == ROSIN_DEVICE_GPU; }

Device Device::at_position(int position) noexcept {
  Device device;
  device.position_ = static_cast<uint8_t>(position);
  return device;
}

Device Device::with(KeepTypes) const noexcept {
  Device device = *this;
  device.types_ = kept_types;
  return device;
}

Device Device::with(DType type) const {
  if (!is_float(type)) {
    throw Error(ErrorKind::argument, std::string("with: the element type of a device must be a float type; got ") +
                                         to_string(type) + "; integers keep their type on every move");
  }
  Device device = *this;
  device.types_ = static_cast<uint8_t>(type);
  return device;
}

DType Device::type_after_move(DType type, const Device& from) const noexcept {
  if (types_ == kept_types) return type;
  if (types_ != usual_types) {
    const auto wanted = static_cast<DType>(types_);
    if (is_complex(type)) return wanted == DType::Float64 ? DType::ComplexF64 : DType::ComplexF32;
    return is_float(type) ? wanted : type;
  }
  if (position_ == 0 || from.position_ != 0) return type;
  if (type == DType::Float64) return DType::Float32;
  return type == DType::ComplexF64 ? DType::ComplexF32 : type;
}

Device Array::device() const {
  if (is_nothing()) {
    throw Error(ErrorKind::argument, "device: the array is nothing (an empty handle); give it a value first");
  }
  return Device::at_position(node()->device);
}

ArrayOptions::ArrayOptions(const Device& device) noexcept : position_(device.position()) {}

const std::vector<std::string>& supported_devices() {
  static const auto* names = [] {
    auto* list = new std::vector<std::string>;
    for (const BackendName& backend : backend_names()) list->emplace_back(backend.name);
    return list;
  }();
  return *names;
}

std::vector<std::string> supported_gpu_backends() {
  std::vector<std::string> names = supported_devices();
  std::erase(names, "CPU");
  return names;
}

bool loaded(std::string_view backend) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named)) return true;
  const Plugin* plugin = plugins().plugin(named.name);
  return plugin && plugin->functions;
}

bool functional(std::string_view backend) {
  const BackendName& named = backend_named(backend);
  return is_cpu(named) || !devices_of(named, false).empty();
}

bool functional(std::string_view backend, std::string_view library) { return why_not(backend, library).empty(); }

std::string why_not(std::string_view backend, std::string_view library) {
  const BackendName& named = backend_named(backend);
  const std::string reason = why_not(backend);
  if (!reason.empty()) return reason;
  std::string known;
  if (!is_cpu(named)) {
    for (const Capability& one : plugins().capabilities(*plugins().plugin(named.name))) {
      if (equal_without_case(one.name, library)) return one.reason;
      known.append(known.empty() ? "" : ", ").append(one.name);
    }
  }
  return named.name + " looks for no library " + std::string(library) +
         (known.empty() ? std::string() : "; it knows " + known);
}

std::string why_not(std::string_view backend) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named)) return {};
  const Plugin* plugin = plugins().plugin(named.name);
  if (plugin) return plugin->reason;
  return "its plug-in is not loaded, and loading by itself is switched off; call use(\"" + std::string(named.name) +
         "\")";
}

void use(std::string_view backend) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named)) return;
  const bool fresh = !plugins().plugin(named.name);
  const Plugin& plugin = plugins().use(named.name);
  if (fresh) reset_gpu_device();  // what it brings was not there to be chosen
  if (plugin.functions) return;
  throw Error(ErrorKind::device, std::string("use: the plug-in of ") + named.name + " cannot be loaded; " +
                                     plugin.reason + "; \"rosin devices\" shows what was tried");
}

DeviceList devices() {
  DeviceList all;
  for (const BackendName& backend : backend_names()) {
    if (is_cpu(backend)) continue;
    const std::vector<Device> found = devices_of(backend, true);
    all.list.insert(all.list.end(), found.begin(), found.end());
  }
  all.list.push_back(Device());
  return all;
}

DeviceList devices(std::string_view backend) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named)) return {named.name, {Device()}};
  std::vector<Device> found = devices_of(named, false);
  return {spelled(named), std::move(found)};
}

void synchronize(const Device& device) {
  if (device.position() != 0) table().open(device.position()).synchronize();
}

MemoryStats memory_stats(const Device& device) {
  if (device.position() == 0) {
    const BufferUsage usage = buffer_usage();
    return {usage.live, usage.pooled, usage.peak, usage.limit};
  }
  const DevicePool::Usage usage = table().open(device.position()).pool.usage();
  return {usage.live, usage.cached, usage.peak, usage.limit};
}

void trim(const Device& device) {
  if (device.position() == 0) trim_buffers();
  else table().open(device.position()).trim();
}

void set_memory_limit(const Device& device, int64_t bytes) {
  if (bytes < 0) {
    throw Error(ErrorKind::argument, "set_memory_limit: the limit must not be negative; got " + std::to_string(bytes) +
                                         " on " + to_string(device) + "; 0 is no limit");
  }
  if (device.position() == 0) return set_buffer_limit(bytes);
  table().open(device.position()).pool.set_limit(bytes);
}

void set_arena_limit(const Device& device, int64_t bytes) {
  if (bytes < 0) {
    throw Error(ErrorKind::argument, "set_arena_limit: the limit must not be negative; got " + std::to_string(bytes) +
                                         " on " + to_string(device) + "; 0 keeps the two arenas used last");
  }
  if (device.position() == 0) return set_arena_limit_of_cpu(bytes);
  table().open(device.position()).pool.set_arena_limit(bytes);
}

std::string to_string(const Device& device) {
  std::string text(device.backend());
  if (device.position() != 0) text.append(":").append(std::to_string(device.id()));
  return text.append(" (").append(device.name()).append(")");
}

std::string to_string(const DeviceList& devices) {
  std::string text = std::to_string(devices.size()) + " ";
  if (!devices.backend.empty()) text.append(devices.backend).append(" ");
  text.append(devices.size() == 1 ? "device" : "devices");
  const char* separator = ":";
  for (const Device& device : devices) {
    text.append(separator).append("\n").append(std::to_string(device.id())).append(". ").append(device.name());
    separator = "";
  }
  return text;
}

}  // namespace rosin
