// Devices: the CPU, and what is said about back ends that are not there. Plug-ins will add rows to the list of devices.
// Read next: cpu_facts.hpp (name and memory of the machine).
#include <rosin/device.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <rosin/array.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/environment.hpp"
#include "base/nearest.hpp"
#include "graph/node.hpp"
#include "runtime/cpu_facts.hpp"

namespace rosin {
namespace {

struct Backend {
  const char* name;
  const char* plugin;  // its file; null for the built-in one
};

/// In the order of automatic choice.
constexpr Backend backends[] = {{"CUDA", "librosin_cuda.so"},
                                {"AMDGPU", "librosin_amdgpu.so"},
                                {"Metal", "librosin_metal.so"},
                                {"OpenCL", "librosin_opencl.so"},
                                {"CPU", nullptr}};
constexpr const Backend& cpu_backend = backends[4];

/// `("CUDA", "AMDGPU", ...)`, as messages list the back ends.
std::string listed_backends() {
  std::string text;
  for (const Backend& backend : backends) {
    text.append(text.empty() ? "(\"" : ", \"").append(backend.name).append("\"");
  }
  return text.append(")");
}

const Backend* find_backend(std::string_view name) {
  if (equal_without_case(name, "rocm") || equal_without_case(name, "hip")) name = "AMDGPU";
  if (name == "AMD") {
    warn_once("deprecated-backend", "\"AMD\" backend is deprecated. Please use \"AMDGPU\" instead.");
    name = "AMDGPU";
  }
  const auto* found = std::find_if(std::begin(backends), std::end(backends),
                                   [name](const Backend& backend) { return equal_without_case(backend.name, name); });
  return found == std::end(backends) ? nullptr : found;
}

const Backend& backend_named(std::string_view name) {
  if (const Backend* found = find_backend(name)) return *found;
  std::vector<std::string_view> names;
  for (const Backend& backend : backends) names.emplace_back(backend.name);
  std::string text("Unsupported backend: ");
  text.append(name).append(". ");
  const std::string_view meant = nearest_name(name, names);
  if (!meant.empty()) text.append("Did you mean \"").append(meant).append("\"? ");
  throw Error(ErrorKind::argument, text + "Supported backends are " + listed_backends() + ".");
}

bool is_cpu(const Backend& backend) { return &backend == &cpu_backend; }

/// The folder beside librosin in which plug-ins are installed.
std::string plugin_folder() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void*>(&plugin_folder), &info) != 0 && info.dli_fname;
  std::error_code ignored;
  const std::filesystem::path library = std::filesystem::absolute(found ? info.dli_fname : "", ignored);
  return (library.parent_path() / "rosin").lexically_normal().string();
}

/// Why a GPU back end cannot be used.
std::string reason(const Backend& backend) {
  const std::string folder = plugin_folder();
  if (access((folder + "/" + backend.plugin).c_str(), F_OK) == 0) {
    return std::string(backend.plugin) + ": this version of librosin loads no plug-ins";
  }
  return std::string(backend.plugin) + ": not in " + folder;
}

}  // namespace

std::string_view Device::backend() const noexcept { return cpu_backend.name; }
int Device::id() const noexcept { return 0; }
std::string Device::name() const { return cpu_name(); }
int64_t Device::memory() const { return cpu_memory(); }
bool Device::is_gpu() const noexcept { return false; }

Device Device::at_position(int position) noexcept {
  Device device;
  device.position_ = static_cast<uint8_t>(position);
  return device;
}

Device Array::device() const {
  if (is_nothing()) {
    throw Error(ErrorKind::argument, "device: the array is nothing (an empty handle); give it a value first");
  }
  return Device::at_position(node()->device);
}

const std::vector<std::string>& supported_devices() {
  static const auto* names = [] {
    auto* list = new std::vector<std::string>;
    for (const Backend& backend : backends) list->emplace_back(backend.name);
    return list;
  }();
  return *names;
}

std::vector<std::string> supported_gpu_backends() {
  std::vector<std::string> names = supported_devices();
  std::erase(names, cpu_backend.name);
  return names;
}

bool loaded(std::string_view backend) { return is_cpu(backend_named(backend)); }
bool functional(std::string_view backend) { return is_cpu(backend_named(backend)); }

std::string why_not(std::string_view backend) {
  const Backend& named = backend_named(backend);
  return is_cpu(named) ? std::string() : reason(named);
}

DeviceList devices() { return {{}, {Device()}}; }

DeviceList devices(std::string_view backend) {
  const Backend& named = backend_named(backend);
  DeviceList found{named.name, {}};
  if (is_cpu(named)) found.list.push_back(Device());
  return found;
}

Device get_device(DeviceChoice choice) {
  if (const std::optional<std::string> preferred = environment(Setting::gpu_backend)) {
    if (const Backend* backend = find_backend(*preferred)) {
      const std::string name(backend->name);
      if (choice.verbose) inform("Using backend set in preferences: " + name + ".");
      if (is_cpu(*backend)) return Device();
      warn_once("backend-unavailable",
                "Trying to use backend: " + name + " but its plug-in is not installed (" + reason(*backend) +
                    "). Choosing automatically.",
                name);
    } else {
      warn_once("unknown-backend", "`gpu_backend` preference is set to " + *preferred +
                                       ", which is not allowed.\nDefaulting to automatic device selection.");
    }
  }
  if (choice.verbose) inform(std::string("Using backend: ") + cpu_backend.name + ".");
  return Device();
}

Device get_device(std::string_view backend, int) {
  const Backend& named = backend_named(backend);
  if (is_cpu(named)) return Device();
  throw Error(ErrorKind::device, std::string("Unavailable backend: ") + named.name +
                                     ". Its plug-in is not installed (" + reason(named) +
                                     "); get_device() chooses among those that are there.");
}

Device gpu_device(GpuChoice choice) {
  if (choice.force) {
    throw Error(ErrorKind::device,
                "gpu_device: No functional GPU device found! \"rosin devices\" says why; without "
                ".force the CPU is taken");
  }
  warn_once("no-gpu",
            "No functional GPU backend found! Defaulting to CPU. \"rosin devices\" says why. (No action is "
            "required if you want to run on the CPU.)");
  return Device();
}

std::string to_string(const Device& device) {
  std::string text(device.backend());
  if (device.is_gpu()) text.append(":").append(std::to_string(device.id()));
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
