// The table of the driver's functions in terms of HIP: most are HIP's own; what HIP has otherwise is made here. A
// device stands for its context, each thread has a current one, and copies from and to pageable memory are waited for,
// as HIP does not promise to be done with that memory when they return. Read first: hip.hpp. Read next: plugin.cpp.
#include <iterator>
#include <map>
#include <mutex>

#include "amdgpu/hip.hpp"
#include "amdgpu/types.hpp"

namespace rosin::amdgpu {
namespace {

using namespace driver;

/// What HIP has in another form.
struct Hip {
  const char* (*error_name)(Code code);
  const char* (*error_string)(Code code);
  Code (*set_device)(int device);
  Code (*get_device)(int* device);
  Code (*alloc_host)(void** address, size_t bytes, unsigned flags);
  Code (*free_host)(void* address);
  Code (*pin)(void* memory, size_t bytes, unsigned flags);
  Code (*unpin)(void* memory);
  Code (*copy_in)(Address to, const void* from, size_t bytes, Stream stream);
  Code (*copy_out)(void* to, Address from, size_t bytes, Stream stream);
  Code (*copy_peer)(Address to, int to_device, Address from, int from_device, size_t bytes, Stream stream);
  Code (*stream_sync)(Stream stream);
  Code (*properties_of_hip_5)(Properties* properties, int device);
  Code (*properties_of_hip_6)(Properties* properties, int device);
};
Hip hip;

// ---- The context of a device is its number, one more than that, as none is null.

Context context_of(int device) { return reinterpret_cast<Context>(static_cast<intptr_t>(device) + 1); }
int device_of(Context context) { return static_cast<int>(reinterpret_cast<intptr_t>(context) - 1); }

/// What was current before, of the calling thread.
std::vector<int>& before() {
  thread_local std::vector<int> all;
  return all;
}

Code retain(Context* context, DeviceNumber device) {
  *context = context_of(device);
  return 0;
}
Code give_back(DeviceNumber) { return 0; }
Code push(Context context) {
  int now = 0;
  if (const Code code = hip.get_device(&now)) return code;
  if (const Code code = now == device_of(context) ? 0 : hip.set_device(device_of(context))) return code;
  before().push_back(now);
  return 0;
}
Code pop(Context* context) {
  int now = 0;
  if (before().empty() || hip.get_device(&now) != 0) return 0;
  *context = context_of(now);
  const int last = before().back();
  before().pop_back();
  return last == now ? 0 : hip.set_device(last);
}

// ---- Pinned memory, from where to where.

class Pinned {
 public:
  void add(const void* memory, size_t bytes) {
    const std::lock_guard guard(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(memory)] = bytes;
  }
  void remove(const void* memory) {
    const std::lock_guard guard(mutex_);
    blocks_.erase(reinterpret_cast<uintptr_t>(memory));
  }
  bool has(const void* memory, size_t bytes) {
    const auto first = reinterpret_cast<uintptr_t>(memory);
    const std::lock_guard guard(mutex_);
    const auto next = blocks_.upper_bound(first);
    if (next == blocks_.begin()) return false;
    const auto& [begin, count] = *std::prev(next);
    return first + bytes <= begin + count;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;
};

/// Never destroyed: pinned memory is given back while the process exits.
Pinned& pinned() {
  static Pinned* all = new Pinned;
  return *all;
}

Code alloc_host(void** address, size_t bytes, unsigned flags) {
  const Code code = hip.alloc_host(address, bytes, flags);
  if (code == 0) pinned().add(*address, bytes);
  return code;
}
Code free_host(void* address) {
  pinned().remove(address);
  return hip.free_host(address);
}
Code pin(void* memory, size_t bytes, unsigned flags) {
  const Code code = hip.pin(memory, bytes, flags);
  if (code == 0) pinned().add(memory, bytes);
  return code;
}
Code unpin(void* memory) {
  pinned().remove(memory);
  return hip.unpin(memory);
}
Code copy_in(Address to, const void* from, size_t bytes, Stream stream) {
  const Code code = hip.copy_in(to, from, bytes, stream);
  return code != 0 || pinned().has(from, bytes) ? code : hip.stream_sync(stream);
}
Code copy_out(void* to, Address from, size_t bytes, Stream stream) {
  const Code code = hip.copy_out(to, from, bytes, stream);
  return code != 0 || pinned().has(to, bytes) ? code : hip.stream_sync(stream);
}
Code copy_peer(Address to, Context to_context, Address from, Context from_context, size_t bytes, Stream stream) {
  return hip.copy_peer(to, device_of(to_context), from, device_of(from_context), bytes, stream);
}

Code error_name(Code code, const char** text) {
  *text = hip.error_name(code);
  return 0;
}
Code error_string(Code code, const char** text) {
  *text = hip.error_string(code);
  return 0;
}

template <class F> void look_up(const Library& library, F& function, const char* name) {
  function = reinterpret_cast<F>(library.find(name));
}

void find_own(Functions& all, auto&& find) {
  find(all.init, "hipInit");
  find(all.driver_version, "hipDriverGetVersion");
  find(all.device_count, "hipGetDeviceCount");
  find(all.device_get, "hipDeviceGet");
  find(all.device_name, "hipDeviceGetName");
  find(all.device_memory, "hipDeviceTotalMem");
  find(all.device_attribute, "hipDeviceGetAttribute");
  find(all.device_pci, "hipDeviceGetPCIBusId");
  find(all.memory_info, "hipMemGetInfo");
  find(all.alloc, "hipMalloc");
  find(all.free, "hipFree");
  find(all.copy, "hipMemcpyDtoDAsync");
  find(all.stream_create, "hipStreamCreateWithFlags");
  find(all.stream_destroy, "hipStreamDestroy");
  find(all.stream_sync, "hipStreamSynchronize");
  find(all.stream_wait, "hipStreamWaitEvent");
  find(all.event_create, "hipEventCreateWithFlags");
  find(all.event_destroy, "hipEventDestroy");
  find(all.event_record, "hipEventRecord");
  find(all.event_query, "hipEventQuery");
  find(all.event_sync, "hipEventSynchronize");
  find(all.module_load, "hipModuleLoadData");
  find(all.module_unload, "hipModuleUnload");
  find(all.module_function, "hipModuleGetFunction");
  find(all.launch, "hipModuleLaunchKernel");
  find(all.fill, "hipMemsetD8Async");
  find(all.reaches, "hipDeviceCanAccessPeer");
  find(all.priorities, "hipDeviceGetStreamPriorityRange");
  find(all.stream_create_with, "hipStreamCreateWithPriority");
  find(all.event_elapsed, "hipEventElapsedTime");
}

void find_other(auto&& find) {
  find(hip.error_name, "hipGetErrorName");
  find(hip.error_string, "hipGetErrorString");
  find(hip.set_device, "hipSetDevice");
  find(hip.get_device, "hipGetDevice");
  find(hip.alloc_host, "hipHostMalloc");
  find(hip.free_host, "hipHostFree");
  find(hip.pin, "hipHostRegister");
  find(hip.unpin, "hipHostUnregister");
  find(hip.copy_in, "hipMemcpyHtoDAsync");
  find(hip.copy_out, "hipMemcpyDtoHAsync");
  find(hip.copy_peer, "hipMemcpyPeerAsync");
  find(hip.properties_of_hip_5, "hipGetDeviceProperties");
  find(hip.stream_sync, "hipStreamSynchronize");
}

}  // namespace

std::string find_functions(const Library& library, Functions& all) {
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    look_up(library, function, name);
    if (!function && missing.empty()) missing = name;
  };
  find_own(all, find);
  find_other(find);
  look_up(library, hip.properties_of_hip_6, "hipGetDevicePropertiesR0600");
  all.error_name = error_name;
  all.error_string = error_string;
  all.context_retain = retain;
  all.context_release = give_back;
  all.context_push = push;
  all.context_pop = pop;
  all.alloc_host = alloc_host;
  all.free_host = free_host;
  all.pin = pin;
  all.unpin = unpin;
  all.copy_in = copy_in;
  all.copy_out = copy_out;
  all.copy_peer = copy_peer;
  return missing;
}

std::string architecture_of(int ordinal) {
  Properties properties;
  const bool newer = hip.properties_of_hip_6 != nullptr;
  if ((newer ? hip.properties_of_hip_6 : hip.properties_of_hip_5)(&properties, ordinal) != 0) return {};
  const std::string_view name(properties.all + (newer ? Properties::name_in_hip_6 : Properties::name_in_hip_5),
                              Properties::name_bytes - 1);
  return std::string(name.substr(0, name.find('\0')));
}

}  // namespace rosin::amdgpu
