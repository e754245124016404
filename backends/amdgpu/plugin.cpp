// librosin_amdgpu.so: AMD's GPUs, by HIP. Read first: hip.hpp, runtime.cpp.
#include "amdgpu/hip.hpp"
#include "amdgpu/miopen.hpp"
#include "amdgpu/types.hpp"
#include "common/text_field.hpp"
#include "driver/rocm.hpp"
#include "vendor/calls.hpp"
#include "vendor/capabilities.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace rosin::amdgpu {
namespace {

using driver::Driver;
using driver::Failure;

constexpr int oldest_hip = 50700000;

/// What hides devices, as HIP reads it; empty: no variable does.
std::string hidden_text() {
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    if (const char* value = std::getenv(name)) {
      return std::string("all devices are hidden by ") + name + "=\"" + value + "\"";
    }
  }
  return {};
}

/// What codes mean, by HIP's documentation.
std::vector<driver::Meaning> meanings() {
  std::vector<driver::Meaning> all;
  const auto mean = [&](Error code, rosin_status status) { all.push_back({static_cast<driver::Code>(code), status}); };
  using enum Error;
  mean(out_of_memory, ROSIN_OUT_OF_MEMORY);
  mean(not_ready, ROSIN_NOT_READY);
  mean(not_supported, ROSIN_UNSUPPORTED);
  mean(no_device, ROSIN_UNSUPPORTED);
  mean(no_binary_for_gpu, ROSIN_INVALID);  // compiled for another one
  for (const Error lost : {deinitialized, ecc_not_correctable, illegal_address, launch_timeout, context_is_destroyed,
                           assertion, launch_failure, unknown}) {
    mean(lost, ROSIN_DEVICE_FAULT);
  }
  for (const Error refused :
       {capture_unsupported, capture_invalidated, capture_merge, capture_unmatched, capture_unjoined, capture_isolation,
        capture_implicit, captured_event, capture_wrong_thread, graph_update_failure}) {
    mean(refused, ROSIN_UNSUPPORTED);
  }
  return all;
}

/// Loading HIP takes a while and starts threads, so where the system has no GPU for it, it stays closed. Folders that
/// are named are looked into in any case.
std::string reason_of_system() {
  if (!driver::variable("ROSIN_ROCM_LIBRARIES").empty()) return {};
  constexpr const char *kernel_driver = "/dev/kfd", *of_windows = "/dev/dxg";
  if (access(kernel_driver, F_OK) != 0) {
    if (access(of_windows, F_OK) == 0) return {};
    return std::string("there is no AMD GPU, or its kernel driver amdgpu is not loaded (") + kernel_driver +
           " does not exist)";
  }
  if (access(kernel_driver, R_OK | W_OK) == 0) return {};
  return std::string("this user may not use AMD GPUs (") + kernel_driver +
         " cannot be opened); join the groups render and video";
}

/// Opens and starts HIP; throws with the reason.
Driver start(int& version) {
  const auto unusable = [](std::string text) { return Failure{ROSIN_UNSUPPORTED, std::move(text)}; };
  if (const std::string reason = reason_of_system(); !reason.empty()) throw unusable(reason);
  Driver driver;
  driver.meanings = meanings();
  const Library& library = hip_library();
  if (!library.handle) throw unusable("ROCm's HIP runtime is not installed (" + library.reason + ")");
  const std::string missing = find_functions(library, driver.functions);
  if (!missing.empty()) {
    throw unusable("the HIP runtime is too old: it has no " + missing + "; install ROCm 5.7 or later");
  }
  const driver::Code code = driver.functions.init(0);
  for (const Error none : {Error::no_device, Error::invalid_device}) {  // the latter in HIP 5
    if (code != static_cast<driver::Code>(none)) continue;
    throw unusable(hidden_text().empty() ? "HIP finds no AMD GPU" : hidden_text());
  }
  driver.check(code, "start of HIP");
  driver.check(driver.functions.driver_version(&version), "version of HIP");
  if (version < oldest_hip) {
    throw unusable("the HIP runtime is too old: it is " + version_text(version) + ", " + version_text(oldest_hip) +
                   " is needed; install ROCm 5.7 or later");
  }
  return driver;
}

/// The driver, or why there is none: it is started once.
struct Started {
  std::optional<Driver> driver;
  Failure failure{ROSIN_OK, {}};
  int version = 0;

  Started() {
    try {
      driver = start(version);
    } catch (const Failure& why) {
      failure = {ROSIN_UNSUPPORTED, driver::with_folders(places(), why.text)};
    }
  }
};

const Started& started() {
  static const Started once;
  return once;
}

}  // namespace

const driver::Places& places() { return driver::rocm_places(); }

/// Other than a driver of the kernel, it comes with the toolkit.
const Library& hip_library() {
  static const Library library = open_library(places(), driver::hip_names());
  return library;
}

/// What names no function of HIP has none of another runtime.
bool is_of_this_runtime(const Library& library) {
  constexpr const char* any_function = "hipGetDeviceCount";
  const void* const its_own = library.find(any_function);
  return !its_own || its_own == hip_library().find(any_function);
}

bool is_cdna(std::string_view architecture) {
  const auto begins = [&](const char* name) { return architecture.starts_with(name); };
  return begins("gfx908") || begins("gfx90a") || begins("gfx94") || begins("gfx95");
}

const Compiler& the_compiler() {
  driver::the_driver();
  static const Compiler compiler(started().version);
  return compiler;
}

namespace {

/// Devices can be used only where their kernels can be compiled.
rosin_status device_count(int32_t* count) {
  return driver::guarded([&] {
    const Driver& driver = driver::the_driver();
    if (!the_compiler().reason().empty()) throw Failure{ROSIN_UNSUPPORTED, the_compiler().reason()};
    int found = 0;
    const driver::Code code = driver.functions.device_count(&found);
    if (code != static_cast<driver::Code>(Error::no_device)) driver.check(code, "count of devices");
    if (found == 0) plugin::set_error(hidden_text().empty() ? "HIP finds no AMD GPU" : hidden_text());
    *count = found;
  });
}

struct Found : vendor::Capabilities {
  Found() {
    add("HIP", version_text(started().version));
    add("hipRTC", the_compiler().version());
    vendor::FirstDevice first;
    add_blas(first);
    const DnnLibrary& dnn = dnn_library();
    const std::string& reason = dnn.reason();
    add("MIOpen", dnn.version(),
        !reason.empty() ? reason
        : first.get()   ? dnn_of(*first.get()).reason()
                        : first.reason());
  }
};

rosin_status capabilities(const rosin_capability** list, uint32_t* count) {
  return driver::guarded([&] {
    static const Found found;
    found.put(list, count);
  });
}

/// Compilers of several versions round square roots otherwise.
rosin_status compile_key(rosin_device*, const char** key) {
  return driver::guarded([&] {
    static const std::string text = "HIP C++17, IEEE, hipRTC " + the_compiler().version();
    *key = text.c_str();
  });
}

rosin_backend make_table() {
  rosin_backend table = driver::table_of("AMDGPU", "AMDGPU " ROSIN_VERSION);
  table.device_count = device_count;
  table.capabilities = capabilities;
  table.compile_key = compile_key;
  table.attach = [](const rosin_host* host) { host_of_programs = host; };
  vendor::put_calls(table);
  return table;
}

/// Architectures with matrix units: CDNA, and RDNA 3 and later.
uint32_t matrix_types(std::string_view architecture) {
  const uint32_t halves = 1u << ROSIN_FLOAT16 | 1u << ROSIN_BFLOAT16;
  const uint32_t wide = architecture.starts_with("gfx908") ? 0 : 1u << ROSIN_FLOAT64;
  if (is_cdna(architecture)) return halves | 1u << ROSIN_FLOAT32 | wide;
  return architecture.starts_with("gfx11") || architecture.starts_with("gfx12") ? halves : 0;
}

/// How these have matrices. gfx1250 and what comes later have others.
int32_t matrix_layout(std::string_view architecture) {
  if (is_cdna(architecture)) return ROSIN_LAYOUT_MFMA;
  if (architecture.starts_with("gfx11")) return ROSIN_LAYOUT_WMMA11;
  return architecture.starts_with("gfx120") ? ROSIN_LAYOUT_WMMA12 : ROSIN_LAYOUT_NONE;
}

}  // namespace
}  // namespace rosin::amdgpu

namespace rosin::driver {

const Driver& the_driver() {
  const amdgpu::Started& started = amdgpu::started();
  if (!started.driver) throw started.failure;
  return *started.driver;
}

rosin_device_info info_of(int ordinal) {
  using enum amdgpu::DeviceAttribute;
  const Driver& driver = the_driver();
  DeviceNumber number = 0;
  driver.check(driver.functions.device_get(&number, ordinal), "facts of a device");
  const auto attribute = [&](amdgpu::DeviceAttribute which) {
    int value = 0;
    driver.check(driver.functions.device_attribute(&value, static_cast<int>(which), number), "facts of a device");
    return value;
  };
  rosin_device_info info{};
  info.size = sizeof info;
  driver.check(driver.functions.device_name(info.name, sizeof info.name, number), "facts of a device");
  driver.check(driver.functions.device_pci(info.pci, sizeof info.pci, number), "facts of a device");
  size_t bytes = 0;
  driver.check(driver.functions.device_memory(&bytes, number), "facts of a device");
  const std::string target = amdgpu::architecture_of(ordinal), architecture = target.substr(0, target.find(':'));
  if (!target.starts_with("gfx")) throw Failure{ROSIN_UNSUPPORTED, "HIP does not say the architecture of the device"};
  plugin::put(info.driver, "HIP " + amdgpu::version_text(amdgpu::started().version));
  plugin::put(info.capability, architecture);
  plugin::put(info.target, target);
  info.memory = bytes;
  info.largest_allocation = bytes;
  info.kind = ROSIN_DEVICE_GPU;
  info.language = ROSIN_LANGUAGE_HIP;
  info.float64 = 1;
  info.largest_group = attribute(max_threads_per_block);
  info.shared_bytes = attribute(max_shared_memory_per_block);
  info.alignment = 256;
  info.units = attribute(multiprocessor_count);
  info.warp = attribute(warp_size);
  info.cache_bytes = attribute(l2_cache_size);
  info.registers = attribute(max_registers_per_block);
  info.argument_bytes = 4096;
  info.vector_bytes = 16;
  info.instructions = ROSIN_TAKES_VECTORS | ROSIN_TAKES_READ_ONLY | ROSIN_TAKES_CHOICES | ROSIN_TAKES_ARRIVALS;
  if (info.warp > 1) info.instructions |= ROSIN_TAKES_SHUFFLE;
  info.matrix_types = amdgpu::matrix_types(architecture);
  info.matrix_layout = amdgpu::matrix_layout(architecture);
  const int32_t of_matrices = info.matrix_layout == ROSIN_LAYOUT_MFMA ? 64 : 32;
  if (info.matrix_layout != ROSIN_LAYOUT_NONE && info.warp == of_matrices) {
    info.instructions |= ROSIN_TAKES_SQUARE_MATRICES;
  }
  return info;
}

std::string compiled_text(const std::string& target, const char* text) {
  return amdgpu::the_compiler().compile(target, text);
}

}  // namespace rosin::driver

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static const rosin_backend table = rosin::amdgpu::make_table();
  return abi == ROSIN_BACKEND_ABI ? &table : nullptr;
}
