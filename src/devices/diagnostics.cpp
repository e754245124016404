// Reports on plug-ins, devices and surroundings: gathers what plugin.hpp, plugin_table.hpp and preferences.hpp know.
#include <rosin/diagnostics.hpp>

#include <filesystem>
#include <utility>

#include "base/environment.hpp"
#include "devices/backends.hpp"
#include "devices/plugin.hpp"
#include "devices/plugin_table.hpp"
#include "devices/preference_file.hpp"
#include "devices/preferences.hpp"
#include "platform/paths.hpp"
#include "run/cache_folder.hpp"
#include "run/device_table.hpp"

namespace rosin {
namespace {

/// "UInt8, Float16": bit n of `types` stands for type n.
std::string names_of_types(uint32_t types) {
  std::string names;
  for (int n = 0; n <= ROSIN_COMPLEX64; ++n) {
    if (types >> n & 1) names.append(names.empty() ? "" : ", ").append(to_string(static_cast<DType>(n)));
  }
  return names;
}

/// What kernels may have beyond the first page of instructions.
std::string names_of_instructions(uint64_t sets) {
  static constexpr std::pair<rosin_instruction_set, const char*> known[] = {
      {ROSIN_TAKES_VECTORS, "vectors"},
      {ROSIN_TAKES_READ_ONLY, "read-only"},
      {ROSIN_TAKES_SHUFFLE, "shuffle"},
      {ROSIN_TAKES_LARGE_SHARED, "large shared"},
      {ROSIN_TAKES_MATRICES, "matrices"},
      {ROSIN_TAKES_CHOICES, "choices"},
      {ROSIN_TAKES_SQUARE_MATRICES, "square matrices"},
      {ROSIN_TAKES_ARRIVALS, "arrivals"}};
  std::string names;
  for (const auto& [set, name] : known) {
    if (sets & set) names.append(names.empty() ? "" : ", ").append(name);
  }
  return names;
}

std::string hexadecimal(const unsigned char (&uuid)[16]) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  bool any = false;
  for (const unsigned char byte : uuid) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
    any = any || byte != 0;
  }
  return any ? text : std::string();
}

/// Devices of the same back end whose memory this one copies from straight.
std::string peers_of(const Plugin& plugin, int id) {
  std::string peers;
  const rosin_backend& functions = *plugin.functions;
  rosin_device* device = nullptr;
  if (!functions.peer || plugin.positions.size() < 2 || functions.open(id, &device) != ROSIN_OK) return peers;
  for (int32_t other = 0; other < static_cast<int32_t>(plugin.positions.size()); ++other) {
    int32_t reaches = 0;
    if (other == id || functions.peer(device, other, &reaches) != ROSIN_OK || reaches == 0) continue;
    peers.append(peers.empty() ? "" : ", ").append(plugin.backend).append(":").append(std::to_string(other));
  }
  functions.close(device);
  return peers;
}

std::vector<DeviceFact> facts_of(const rosin_device_info& info) {
  std::vector<DeviceFact> facts;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "0") facts.push_back({name, value});
  };
  add("units", std::to_string(info.units));
  add("warp", std::to_string(info.warp));
  add("largest group", std::to_string(info.largest_group));
  add("shared bytes", std::to_string(info.shared_bytes));
  add("largest shared bytes", std::to_string(info.largest_shared));
  add("cache bytes", std::to_string(info.cache_bytes));
  add("registers", std::to_string(info.registers));
  add("argument bytes", std::to_string(info.argument_bytes));
  add("vector bytes", std::to_string(info.vector_bytes));
  add("alignment", std::to_string(info.alignment));
  add("largest allocation", std::to_string(info.largest_allocation));
  add("matrix types", names_of_types(info.matrix_types));
  add("instructions", names_of_instructions(info.instructions));
  add("uuid", hexadecimal(info.uuid));
  return facts;
}

DeviceReport report_of(int position) {
  if (position == 0) return {Device(), {}, {}, {}, true, {}};
  const rosin_device_info& info = DeviceTable::instance().info_of(position);
  return {Device::at_position(position), info.driver, info.capability, info.pci, info.float64 != 0, facts_of(info)};
}

/// Opens a device and closes it; the reason when that fails.
std::string fault_of_device(const rosin_backend& functions, int id) {
  rosin_device_info info{};
  info.size = sizeof info;
  rosin_device* device = nullptr;
  const bool opened = functions.device_info(id, &info) == ROSIN_OK && functions.open(id, &device) == ROSIN_OK;
  if (opened) {
    functions.close(device);
    return {};
  }
  const char* said = functions.error_text();
  return "device " + std::to_string(id) + " cannot be opened: " + (said && *said ? said : "no reason is given");
}

}  // namespace

BackendReport backend_report(std::string_view name) {
  const BackendName& backend = backend_named(name);
  BackendReport report;
  report.backend = backend.name;
  if (is_cpu(backend)) {
    report.devices.push_back(report_of(0));
    return report;
  }
  PluginTable& plugins = PluginTable::instance();
  const Plugin& plugin = plugins.use(backend.name);
  report.backend = plugin.backend;
  report.reason = plugin.reason;
  if (plugin.functions && plugin.functions->version) report.version = plugin.functions->version;
  report.found = plugins.capabilities(plugin);
  for (const PluginAttempt& attempt : plugin.attempts) report.tried.push_back({attempt.path, attempt.reason});
  for (const int position : plugin.positions) {
    DeviceReport device = report_of(position);
    const std::string peers = peers_of(plugin, device.device.id());
    if (!peers.empty()) device.facts.push_back({"copies straight from", peers});
    report.devices.push_back(std::move(device));
  }
  return report;
}

std::vector<std::string> detail::plugin_files(std::string_view name) {
  const BackendName& backend = backend_named(name);
  std::vector<std::string> files;
  if (is_cpu(backend)) return files;
  for (const std::string& folder : plugin_search_folders()) {
    files.push_back(folder + "/" + plugin_file_name(backend.name));
  }
  return files;
}

detail::PluginProbe detail::probe_plugin(const std::string& path) {
  detail::PluginProbe probe;
  const std::string backend = name_in_plugin_file(platform::name_of(platform::path_of(path).filename()));
  if (backend.empty()) {
    probe.reason = "has not the name of a plug-in, such as librosin_cuda.so";
    return probe;
  }
  const rosin_backend* functions = load_plugin_file(path, backend, probe.reason);
  if (!functions) return probe;
  probe.loaded = true;
  if (functions->version) probe.version = functions->version;
  int count = 0;
  probe.reason = count_devices(*functions, count);
  for (int id = 0; id < count && probe.reason.empty(); ++id) {
    probe.reason = fault_of_device(*functions, id);
    if (probe.reason.empty()) ++probe.devices;
  }
  return probe;
}

BackendDecision backend_decision() {
  const std::optional<Preference> preference = gpu_backend_preference();
  if (!preference) return {};
  if (preference->file.empty()) return {DecidedBy::environment, preference->value, {}, 0, {}};
  return {DecidedBy::file, preference->value, preference->file, preference->line, preference->table};
}

std::vector<VariableReport> environment_report() {
  std::vector<VariableReport> reports;
  for (const EnvironmentVariable& variable : environment_variables()) {
    reports.push_back({std::string(variable.name), std::string(variable.meaning), std::string(variable.when_unset),
                       environment(variable.setting).value_or("")});
  }
  return reports;
}

LibraryReport library_report() {
  return {ROSIN_VERSION, preference_file().value_or(""), cache_folder().value_or(""), plugin_search_folders()};
}

}  // namespace rosin
