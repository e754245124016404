// librosin_cuda.so: the driver of NVIDIA's GPUs under the names that CUDA gives its functions. Read first: cuda.hpp.
#include "common/text_field.hpp"
#include "cuda.hpp"
#include "cuda/calls.hpp"
#include "cuda/cudnn.hpp"
#include "types.hpp"
#include "vendor/capabilities.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace rosin::cuda {
namespace {

using driver::Driver;
using driver::Failure;
using driver::Functions;

constexpr int oldest_driver = 11080;

std::string hidden_text(const char* visible) {
  return std::string("all devices are hidden by CUDA_VISIBLE_DEVICES=\"") + visible + "\"";
}

/// The functions under CUDA's names; what is missing makes the driver too old.
std::string find_functions(const Library& library, Functions& all) {
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    if (!function && missing.empty()) missing = name;
  };
  find(all.init, "cuInit");
  find(all.driver_version, "cuDriverGetVersion");
  find(all.error_name, "cuGetErrorName");
  find(all.error_string, "cuGetErrorString");
  find(all.device_count, "cuDeviceGetCount");
  find(all.device_get, "cuDeviceGet");
  find(all.device_name, "cuDeviceGetName");
  find(all.device_memory, "cuDeviceTotalMem_v2");
  find(all.device_attribute, "cuDeviceGetAttribute");
  find(all.device_pci, "cuDeviceGetPCIBusId");
  find(all.context_retain, "cuDevicePrimaryCtxRetain");
  find(all.context_release, "cuDevicePrimaryCtxRelease_v2");
  find(all.context_push, "cuCtxPushCurrent_v2");
  find(all.context_pop, "cuCtxPopCurrent_v2");
  find(all.memory_info, "cuMemGetInfo_v2");
  find(all.alloc, "cuMemAlloc_v2");
  find(all.free, "cuMemFree_v2");
  find(all.alloc_host, "cuMemHostAlloc");
  find(all.free_host, "cuMemFreeHost");
  find(all.copy_in, "cuMemcpyHtoDAsync_v2");
  find(all.copy_out, "cuMemcpyDtoHAsync_v2");
  find(all.copy, "cuMemcpyDtoDAsync_v2");
  find(all.copy_peer, "cuMemcpyPeerAsync");
  find(all.stream_create, "cuStreamCreate");
  find(all.stream_destroy, "cuStreamDestroy_v2");
  find(all.stream_sync, "cuStreamSynchronize");
  find(all.stream_wait, "cuStreamWaitEvent");
  find(all.event_create, "cuEventCreate");
  find(all.event_destroy, "cuEventDestroy_v2");
  find(all.event_record, "cuEventRecord");
  find(all.event_query, "cuEventQuery");
  find(all.event_sync, "cuEventSynchronize");
  find(all.module_load, "cuModuleLoadData");
  find(all.module_unload, "cuModuleUnload");
  find(all.module_function, "cuModuleGetFunction");
  find(all.launch, "cuLaunchKernel");
  const auto may_find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
  };
  may_find(all.function_set, "cuFuncSetAttribute");
  may_find(all.fill, "cuMemsetD8Async");
  may_find(all.reaches, "cuDeviceCanAccessPeer");
  may_find(all.priorities, "cuCtxGetStreamPriorityRange");
  may_find(all.stream_create_with, "cuStreamCreateWithPriority");
  may_find(all.event_elapsed, "cuEventElapsedTime");
  may_find(all.pin, "cuMemHostRegister_v2");
  may_find(all.unpin, "cuMemHostUnregister");
  return missing;
}

/// From Volta on there are matrix units for Float16, from Ampere on for BFloat16, Float64, and TF32 of Float32.
uint32_t matrix_types(int generation) {
  const uint32_t half = 1u << ROSIN_FLOAT16, more = 1u << ROSIN_BFLOAT16 | 1u << ROSIN_FLOAT32 | 1u << ROSIN_FLOAT64;
  return generation >= 8 ? half | more : generation >= 7 ? half : 0;
}

/// What codes mean, by the CUDA driver's documentation.
std::vector<driver::Meaning> meanings() {
  std::vector<driver::Meaning> all;
  const auto mean = [&](Result code, rosin_status status) { all.push_back({static_cast<driver::Code>(code), status}); };
  mean(Result::out_of_memory, ROSIN_OUT_OF_MEMORY);
  mean(Result::not_ready, ROSIN_NOT_READY);
  mean(Result::not_supported, ROSIN_UNSUPPORTED);
  mean(Result::no_device, ROSIN_UNSUPPORTED);
  // After these the context is lost.
  using enum Result;
  for (const Result lost : {deinitialized, ecc_uncorrectable, illegal_address, launch_timeout, context_is_destroyed,
                            assertion, hardware_stack_error, illegal_instruction, misaligned_address,
                            invalid_address_space, invalid_pc, launch_failed, unknown}) {
    mean(lost, ROSIN_DEVICE_FAULT);
  }
  // Work that cannot be captured, and graphs that cannot be updated.
  for (const Result refused :
       {capture_unsupported, capture_invalidated, capture_merge, capture_unmatched, capture_unjoined, capture_isolation,
        capture_implicit, captured_event, graph_update_failure}) {
    mean(refused, ROSIN_UNSUPPORTED);
  }
  return all;
}

/// Opens and starts the driver; throws with the reason.
Driver start(int& version) {
  Driver driver;
  driver.meanings = meanings();
  const Library& library = driver_library();
  if (!library.handle) {
    throw Failure{ROSIN_UNSUPPORTED, "the NVIDIA driver is not installed (" + library.reason + ")"};
  }
  const std::string missing = find_functions(library, driver.functions);
  if (!missing.empty()) {
    throw Failure{ROSIN_UNSUPPORTED, "the NVIDIA driver is too old: it has no " + missing + "; install a newer one"};
  }
  driver.check(driver.functions.driver_version(&version), "version of the driver");
  if (version < oldest_driver) {
    throw Failure{ROSIN_UNSUPPORTED, "the NVIDIA driver is too old: it is of CUDA " + version_text(version) + ", " +
                                         version_text(oldest_driver) + " is needed; install a newer one"};
  }
  const driver::Code code = driver.functions.init(0);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (code == static_cast<driver::Code>(Result::no_device) && visible)
    throw Failure{ROSIN_UNSUPPORTED, hidden_text(visible)};
  driver.check(code, "start of the NVIDIA driver");
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

const Library& driver_library() {
  static const Library library = driver::open_driver_library(places(), {"libcuda.so.1", "libcuda.so"});
  return library;
}

int driver_version() {
  driver::the_driver();
  return started().version;
}

const DnnLibrary& dnn_library() {
  static const DnnLibrary library(driver_version());
  return library;
}

const Compiler& the_compiler() {
  static const Compiler compiler(driver_version());
  return compiler;
}

namespace {

/// Devices can be used only where their kernels can be compiled.
rosin_status device_count(int32_t* count) {
  return driver::guarded([&] {
    const Driver& driver = driver::the_driver();
    if (!the_compiler().reason().empty()) throw Failure{ROSIN_UNSUPPORTED, the_compiler().reason()};
    int found = 0;
    driver.check(driver.functions.device_count(&found), "count of devices");
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (found == 0 && visible) plugin::set_error(hidden_text(visible));
    *count = found;
  });
}

struct Found : Capabilities {
  Found() {
    add("driver", version_text(started().version));
    add("NVRTC", the_compiler().version());
    FirstDevice first;
    add_blas(first);
    add("cuDNN", dnn_library().version(), why_no_dnn(first));
  }

 private:
  static std::string why_no_dnn(FirstDevice& first) {
    if (!dnn_library().reason().empty()) return dnn_library().reason();
    return first.get() ? dnn_of(*first.get()).reason() : first.reason();
  }
};

rosin_status capabilities(const rosin_capability** list, uint32_t* count) {
  return driver::guarded([&] {
    static const Found found;
    found.put(list, count);
  });
}

/// Options of the compiler only: a program that the driver does not take is compiled anew.
rosin_status compile_key(rosin_device*, const char** key) {
  *key = "CUDA C++17, IEEE";
  return ROSIN_OK;
}

rosin_backend make_table() {
  rosin_backend table = driver::table_of("CUDA", "CUDA " ROSIN_VERSION);
  table.device_count = device_count;
  table.capabilities = capabilities;
  put_calls(table);
  table.attach = [](const rosin_host* host) { host_of_plans = host; };
  table.compile_key = compile_key;
  table.call_reserve = call_reserve;
  return table;
}

}  // namespace

/// Drivers and compilers from 12.1 on take more arguments, for Volta and later. NVRTC is of the driver's major version.
bool takes_long_lists(int generation) {
  const std::string compiler = the_compiler().version();
  return generation >= 7 && started().version >= 12010 && compiler != "12.0";
}

}  // namespace rosin::cuda

namespace rosin::driver {

const Driver& the_driver() {
  const cuda::Started& started = cuda::started();
  if (!started.driver) throw started.failure;
  return *started.driver;
}

rosin_device_info info_of(int ordinal) {
  using enum cuda::DeviceAttribute;
  const Driver& driver = the_driver();
  DeviceNumber number = 0;
  driver.check(driver.functions.device_get(&number, ordinal), "facts of a device");
  const auto attribute = [&](cuda::DeviceAttribute which) {
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
  const std::string architecture =
      "sm_" + std::to_string(attribute(compute_capability_major) * 10 + attribute(compute_capability_minor));
  plugin::put(info.driver, "CUDA " + cuda::version_text(cuda::started().version));
  plugin::put(info.capability, architecture);
  plugin::put(info.target, architecture);
  info.memory = bytes;
  info.largest_allocation = bytes;
  info.kind = ROSIN_DEVICE_GPU;
  info.language = ROSIN_LANGUAGE_CUDA;
  info.float64 = 1;
  info.largest_group = attribute(max_threads_per_block);
  info.shared_bytes = attribute(max_shared_memory_per_block);
  info.alignment = 256;
  const auto if_known = [&](cuda::DeviceAttribute which) {
    int value = 0;
    return driver.functions.device_attribute(&value, static_cast<int>(which), number) == 0 ? value : 0;
  };
  info.units = if_known(multiprocessor_count);
  info.warp = if_known(warp_size);
  info.cache_bytes = if_known(l2_cache_size);
  info.largest_shared = if_known(max_shared_memory_per_block_optin);
  info.registers = if_known(max_registers_per_block);
  info.argument_bytes = cuda::takes_long_lists(attribute(compute_capability_major)) ? 32764 : 4096;
  info.vector_bytes = 16;
  info.instructions = ROSIN_TAKES_VECTORS | ROSIN_TAKES_READ_ONLY | ROSIN_TAKES_CHOICES | ROSIN_TAKES_ARRIVALS;
  if (info.warp > 1) info.instructions |= ROSIN_TAKES_SHUFFLE;
  if (driver.functions.function_set && info.largest_shared > info.shared_bytes) {
    info.instructions |= ROSIN_TAKES_LARGE_SHARED;
  }
  const int generation = attribute(compute_capability_major);
  info.matrix_types = cuda::matrix_types(generation);
  if (generation >= 8 && info.warp == 32) info.instructions |= ROSIN_TAKES_MATRICES;
  return info;
}

std::string compiled_text(const std::string& target, const char* text) {
  return cuda::the_compiler().compile(target, text);
}

}  // namespace rosin::driver

extern "C" __attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  static const rosin_backend table = rosin::cuda::make_table();
  return abi == ROSIN_BACKEND_ABI ? &table : nullptr;
}
