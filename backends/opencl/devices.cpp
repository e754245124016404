// Which devices there are, what they can do, and opening them. Read next: memory.cpp.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/text_field.hpp"
#include "opencl.hpp"

namespace rosin::opencl {
namespace {

// What the smallest device that rosin uses has; see rosin_device_info.
constexpr size_t least_group = 256;
constexpr cl_ulong least_shared_bytes = 16384;

template <class T> T number(cl_device_id id, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(id, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string text(cl_device_id id, cl_device_info what) {
  size_t bytes = 0;
  check(clGetDeviceInfo(id, what, 0, nullptr, &bytes), "clGetDeviceInfo");
  std::string value(bytes, '\0');
  check(clGetDeviceInfo(id, what, bytes, value.data(), nullptr), "clGetDeviceInfo");
  return value.c_str();  // without the zeros at its end
}

std::string text(cl_platform_id id, cl_platform_info what) {
  size_t bytes = 0;
  check(clGetPlatformInfo(id, what, 0, nullptr, &bytes), "clGetPlatformInfo");
  std::string value(bytes, '\0');
  check(clGetPlatformInfo(id, what, bytes, value.data(), nullptr), "clGetPlatformInfo");
  return value.c_str();
}

bool has_extension(cl_device_id id, std::string_view name) {
  const std::string list = " " + text(id, CL_DEVICE_EXTENSIONS) + " ";
  return list.find(" " + std::string(name) + " ") != list.npos;
}

/// "OpenCL 3.0" from "OpenCL 3.0 and what the vendor says more".
std::string version_of(cl_device_id id) {
  const std::string version = text(id, CL_DEVICE_VERSION);
  return version.substr(0, version.find(' ', version.find(' ') + 1));
}

std::string pci_place(cl_device_id id) {
  if (!has_extension(id, "cl_khr_pci_bus_info")) return "";
  const auto place = number<cl_device_pci_bus_info_khr>(id, CL_DEVICE_PCI_BUS_INFO_KHR);
  char digits[32];
  std::snprintf(digits, sizeof digits, "%04x:%02x:%02x.%x", place.pci_domain, place.pci_bus, place.pci_device,
                place.pci_function);
  return digits;
}

int32_t kind_of(cl_device_id id) {
  const auto type = number<cl_device_type>(id, CL_DEVICE_TYPE);
  return type & CL_DEVICE_TYPE_GPU   ? ROSIN_DEVICE_GPU
         : type & CL_DEVICE_TYPE_CPU ? ROSIN_DEVICE_CPU
                                     : ROSIN_DEVICE_OTHER;
}

bool is_usable(cl_device_id id) {
  const std::string version = version_of(id);
  return number<cl_bool>(id, CL_DEVICE_AVAILABLE) && number<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE) &&
         number<cl_bool>(id, CL_DEVICE_ENDIAN_LITTLE) && version >= "OpenCL 1.2" &&
         number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE) >= least_group &&
         number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE) >= least_shared_bytes;
}

/// Names the device and its driver, as compiled kernels fit no other.
std::string target_of(const std::string& driver, cl_device_id id) {
  const std::string all =
      driver + "|" + text(id, CL_DEVICE_NAME) + "|" + text(id, CL_DEVICE_VENDOR) + "|" + text(id, CL_DEVICE_VERSION);
  char digits[32];
  std::snprintf(digits, sizeof digits, "opencl-%016llx", static_cast<unsigned long long>(plugin::checksum(all)));
  return digits;
}

DeviceFacts facts_of(cl_platform_id platform, cl_device_id id) {
  DeviceFacts facts;
  facts.platform = platform;
  facts.id = id;
  rosin_device_info& info = facts.info;
  info.size = sizeof info;
  // The version of the platform can be longer than the field, so it comes last.
  const std::string driver = text(platform, CL_PLATFORM_NAME) + ", driver " + text(id, CL_DRIVER_VERSION) + ", " +
                             text(platform, CL_PLATFORM_VERSION);
  plugin::put(info.name, text(id, CL_DEVICE_NAME));
  plugin::put(info.driver, driver);
  plugin::put(info.capability, version_of(id));
  plugin::put(info.pci, pci_place(id));
  plugin::put(info.target, target_of(driver, id));
  info.memory = number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.largest_allocation = number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.kind = kind_of(id);
  info.language = ROSIN_LANGUAGE_OPENCL;
  info.float64 = has_extension(id, "cl_khr_fp64");
  info.largest_group = static_cast<int32_t>(number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  info.vector_bytes = 16;
  info.instructions = ROSIN_TAKES_READ_ONLY;  // how many items run in step, compilers decide
  // For CPUs they make vectors of neighbouring items, and kernels that are longer only take them longer.
  if (info.kind != ROSIN_DEVICE_CPU) info.instructions |= ROSIN_TAKES_VECTORS;
  info.shared_bytes = static_cast<int64_t>(number<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE));
  info.alignment =
      static_cast<int32_t>(std::clamp<cl_uint>(number<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 16, 256));
  info.units = static_cast<int32_t>(number<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.cache_bytes = static_cast<int64_t>(number<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE));
  info.argument_bytes = static_cast<int32_t>(std::min<size_t>(number<size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE), 4096));
  // PoCL compiles every kernel once more for its binaries, and keeps what it compiles on disk by itself.
  facts.keeps_source = text(platform, CL_PLATFORM_NAME) == "Portable Computing Language";
  facts.options = "-cl-std=CL1.2 -w";
  if (number<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)
    facts.options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return facts;
}

/// A device that fails to answer is passed by; the others work.
void add_device(std::vector<DeviceFacts>& list, cl_platform_id platform, cl_device_id id) {
  try {
    if (is_usable(id)) list.push_back(facts_of(platform, id));
  } catch (const Failure&) {}
}

std::vector<DeviceFacts> look_for_devices() {
  cl_uint count = 0;
  const cl_int code = clGetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0))
    throw Failure{ROSIN_UNSUPPORTED, "no OpenCL driver is installed (no usable .icd file in /etc/OpenCL/vendors)"};
  check(code, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<DeviceFacts> list;
  for (const cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(devices);
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (const cl_device_id id : ids) add_device(list, platform, id);
  }
  return list;
}

}  // namespace

const std::vector<DeviceFacts>& all_devices() {
  static const std::vector<DeviceFacts> list = look_for_devices();
  return list;
}

Queue make_queue(cl_context context, cl_device_id id) {
  cl_int code = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context, id, 0, &code));
  check(code, "clCreateCommandQueue");
  return queue;
}

rosin_status device_count(int32_t* count) {
  return guarded([&] { *count = static_cast<int32_t>(all_devices().size()); });
}

namespace {

/// A platform that has devices, and the version of OpenCL that it speaks.
struct Platform {
  std::string name, version;
};

std::vector<Platform> all_platforms() {
  std::vector<Platform> list;
  for (const DeviceFacts& device : all_devices()) {
    const std::string name = text(device.platform, CL_PLATFORM_NAME);
    const auto same = [&](const Platform& platform) { return platform.name == name; };
    if (std::any_of(list.begin(), list.end(), same)) continue;
    const std::string version = text(device.platform, CL_PLATFORM_VERSION).substr(std::strlen("OpenCL "));
    list.push_back({name, version.substr(0, version.find(' '))});
  }
  return list;
}

std::vector<rosin_capability> capabilities_of(const std::vector<Platform>& platforms) {
  std::vector<rosin_capability> list;
  for (const Platform& platform : platforms) list.push_back({platform.name.c_str(), platform.version.c_str(), nullptr});
  return list;
}

}  // namespace

rosin_status capabilities(const rosin_capability** list, uint32_t* count) {
  return guarded([&] {
    static const std::vector<Platform> platforms = all_platforms();
    static const std::vector<rosin_capability> all = capabilities_of(platforms);
    *list = all.data();
    *count = static_cast<uint32_t>(all.size());
  });
}

namespace {

const DeviceFacts& facts_at(int32_t device) {
  const std::vector<DeviceFacts>& list = all_devices();
  if (device < 0 || static_cast<size_t>(device) >= list.size()) {
    throw Failure{ROSIN_INVALID,
                  "there is no device " + std::to_string(device) + "; devices: " + std::to_string(list.size())};
  }
  return list[static_cast<size_t>(device)];
}

}  // namespace

rosin_status device_info(int32_t device, rosin_device_info* info) {
  return guarded([&] {
    rosin_device_info known = facts_at(device).info;
    known.size = std::min(info->size, sizeof known);
    std::memcpy(info, &known, known.size);
  });
}

rosin_status open(int32_t device, rosin_device** out) {
  return guarded([&] {
    auto opened = std::make_unique<rosin_device>();
    opened->facts = &facts_at(device);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(opened->facts->platform), 0};
    cl_int code = CL_SUCCESS;
    opened->context = Context(clCreateContext(properties, 1, &opened->facts->id, nullptr, nullptr, &code));
    check(code, "clCreateContext");
    opened->service = make_queue(opened->context.get(), opened->facts->id);
    *out = opened.release();
  });
}

void close(rosin_device* device) { delete device; }

}  // namespace rosin::opencl
