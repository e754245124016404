// Choosing a device: by name, by preference, by what there is; and the preference itself.
#include "devices/device_choice.hpp"

#include <mutex>
#include <optional>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "devices/backends.hpp"
#include "devices/plugin_table.hpp"
#include "devices/preferences.hpp"

namespace rosin {
namespace {

/// What gpu_device() chose, until it is reset.
struct Chosen {
  std::mutex lock;
  std::optional<Device> device;
};

Chosen& chosen() {
  static auto* one = new Chosen;
  return *one;
}

/// Why a back end that was asked for by preference is not used; empty when it is. Only an installed one can fail later.
std::string refusal(const BackendName& backend) {
  const std::string name(backend.name);
  const Plugin* plugin = PluginTable::instance().plugin(backend.name);
  if (!plugin) {
    return "Trying to use backend: " + name + " but its plug-in is not loaded. Call use(\"" + name +
           "\") and call this function again to respect the preferences backend.";
  }
  if (!plugin->functions) {
    return "Trying to use backend: " + name + " but its plug-in is not installed (" + plugin->reason +
           "). Choosing automatically.";
  }
  if (plugin->reason.empty()) return {};
  return "Backend: " + name + " from the set preferences is not functional (" + plugin->reason +
         "). Defaulting to automatic device selection.";
}

/// The back end that the preference names, if it can be used; says why where it cannot.
const BackendName* preferred(bool verbose) {
  const std::optional<Preference> preference = gpu_backend_preference();
  if (!preference) return nullptr;
  const BackendName* backend = find_backend(preference->value);
  if (!backend) {
    warn_once("unknown-backend", "`gpu_backend` preference is set to " + preference->value +
                                     ", which is not allowed.\nDefaulting to automatic device selection.");
    return nullptr;
  }
  if (verbose) inform(std::string("Using backend set in preferences: ") + backend->name + ".");
  if (is_cpu(*backend)) return backend;
  const std::string why = refusal(*backend);
  if (why.empty()) return backend;
  warn_once("backend-unavailable", why, backend->name);
  return nullptr;
}

Device first_device(const BackendName& backend) {
  if (is_cpu(backend)) return {};
  return devices(backend.name)[0];
}

/// The first device of the preference or of those that are chosen by themselves; the CPU where there is no other.
Device choose(bool verbose) {
  if (const BackendName* backend = preferred(verbose)) return first_device(*backend);
  const Device device = devices().list.front();
  if (verbose) inform("Using backend: " + std::string(device.backend()) + ".");
  return device;
}

[[noreturn]] void throw_unavailable(const BackendName& backend) {
  const std::string name(backend.name);
  const Plugin* plugin = PluginTable::instance().plugin(backend.name);
  std::string text = "Unavailable backend: " + name + ". ";
  if (!plugin) text += "Its plug-in is not loaded; call use(\"" + name + "\") first.";
  else if (!plugin->functions)
    text += "Its plug-in is not installed (" + plugin->reason + "); get_device() chooses among those that are there.";
  else text += "It is not functional (" + plugin->reason + "); get_device() chooses among those that are.";
  throw Error(ErrorKind::device, text);
}

constexpr const char* no_gpu = "No functional GPU device found!";

/// Says that a device cannot be set, and why.
void warn_setting_ignored(const BackendName& backend) {
  const std::string name(backend.name);
  const std::string why = is_cpu(backend) ? "setting a device of the CPU makes no sense"
                                          : name + " is not functional (" + why_not(name) + ")";
  warn_once("device-setting", "set_device: " + why + ". Ignoring the device setting.", name);
}

}  // namespace

Device get_device(DeviceChoice choice) { return choose(choice.verbose); }

Device get_device(std::string_view backend, int id) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named)) return {};
  const DeviceList there = devices(named.name);
  const int64_t count = there.size();
  if (count == 0) throw_unavailable(named);
  if (id >= 0 && id < count) return there[static_cast<size_t>(id)];
  throw Error(ErrorKind::device, "get_device: " + there.backend + " has " + std::to_string(count) +
                                     (count == 1 ? " device" : " devices") + "; got id " + std::to_string(id) +
                                     "; ids count from 0");
}

Device chosen_gpu() {
  Chosen& last = chosen();
  std::lock_guard guard(last.lock);
  if (!last.device) last.device = choose(false);
  return *last.device;
}

bool cpu_is_preferred() {
  const std::optional<Preference> preference = gpu_backend_preference();
  const BackendName* backend = preference ? find_backend(preference->value) : nullptr;
  return backend && is_cpu(*backend);
}

Device gpu_device(GpuChoice choice) {
  const Device device = chosen_gpu();
  if (device.position() != 0) return device;
  const bool wanted = cpu_is_preferred();
  if (choice.force) {
    throw Error(ErrorKind::device,
                std::string("gpu_device: ") +
                    (wanted ? "the preference gpu_backend is CPU, and .force asks for a GPU; set_gpu_backend(\"\") "
                              "removes the preference"
                            : std::string(no_gpu) + " \"rosin devices\" says why; without .force the CPU is taken"));
  }
  if (wanted) return {};
  warn_once("no-gpu",
            "No functional GPU backend found! Defaulting to CPU. \"rosin devices\" says why. (No action is "
            "required if you want to run on the CPU.)");
  return {};
}

Device gpu_device(int id, GpuChoice choice) {
  const Device first = gpu_device(choice);
  if (first.position() == 0 || first.id() == id) return first;
  const int64_t count = devices(first.backend()).size();
  if (id < 0 || id >= count) {
    throw Error(ErrorKind::argument, "gpu_device: id = " + std::to_string(id) + " does not exist; " +
                                         std::string(first.backend()) + " has " + std::to_string(count) +
                                         (count == 1 ? " device" : " devices") + "; ids count from 0");
  }
  set_device(first.backend(), id);
  return gpu_device(choice);
}

void reset_gpu_device() {
  Chosen& last = chosen();
  std::lock_guard guard(last.lock);
  last.device.reset();
}

void set_device(std::string_view backend, int id) {
  const BackendName& named = backend_named(backend);
  if (is_cpu(named) || !functional(named.name)) return warn_setting_ignored(named);
  const Device device = get_device(named.name, id);
  Chosen& last = chosen();
  std::lock_guard guard(last.lock);
  last.device = device;
}

void set_device_by_rank(std::string_view backend, int rank) {
  const int64_t count = devices(backend).size();
  const int64_t id = count > 0 ? ((rank % count) + count) % count : 0;
  set_device(backend, static_cast<int>(id));
}

void set_gpu_backend(std::string_view name) {
  if (name.empty()) {
    write_gpu_backend_preference(std::nullopt);
    reset_gpu_device();
    return inform(
        "Deleted the local preference for `gpu_backend`.\nDevices chosen from now on are chosen automatically.");
  }
  const BackendName* backend = find_backend(name);
  if (!backend) {
    throw Error(ErrorKind::argument, "Unsupported GPU backend: " + std::string(name) + "." + meant_backend(name) +
                                         " Supported backends are: " + listed_backends() + ".");
  }
  const std::optional<Preference> before = gpu_backend_preference();
  if (before && find_backend(before->value) == backend) {
    return inform(std::string("GPU backend is already set to: ") + backend->name + ".\nNo need to do anything else.");
  }
  write_gpu_backend_preference(backend->name);
  reset_gpu_device();
  const bool overruled = before && before->file.empty();
  inform(std::string("New GPU backend set: ") + backend->name + ".\n" +
         (overruled ? before->table + "=" + before->value + " goes before it while that variable is set."
                    : "Devices chosen from now on use it."));
}

std::string gpu_backend() {
  const std::optional<Preference> preference = gpu_backend_preference();
  if (!preference) return "CUDA";
  const BackendName* backend = find_backend(preference->value);
  return backend ? backend->name : preference->value;
}

}  // namespace rosin
