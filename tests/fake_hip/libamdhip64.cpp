// The functions of libamdhip64's stand-in: those of libcuda's under HIP's names, and what HIP has otherwise. See
// README.md. Read first: ../fake_cuda/api.hpp, ../fake_cuda/libcuda.cpp.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "amdgpu/types.hpp"
#include "api.hpp"
#include "cuda/types.hpp"

#define FAKE_HIP_API extern "C" __attribute__((visibility("default"))) int

using namespace fake;
using rosin::amdgpu::DeviceAttribute;
using rosin::amdgpu::Properties;

// Of ../fake_cuda/libcuda.cpp and graphs.cpp. Objects of HIP are objects of CUDA.
extern "C" {
int cuDeviceGetCount(int*);
int cuDeviceGet(int*, int);
int cuDeviceTotalMem_v2(size_t*, int);
int cuDeviceGetPCIBusId(char*, int, int);
int cuMemGetInfo_v2(size_t*, size_t*);
int cuMemAlloc_v2(uint64_t*, size_t);
int cuMemFree_v2(uint64_t);
int cuMemHostAlloc(void**, size_t, unsigned);
int cuMemFreeHost(void*);
int cuMemHostRegister_v2(void*, size_t, unsigned);
int cuMemHostUnregister(void*);
int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, Stream*);
int cuMemsetD8Async(uint64_t, unsigned char, size_t, Stream*);
int cuDeviceCanAccessPeer(int*, int, int);
int cuCtxGetStreamPriorityRange(int*, int*);
int cuStreamCreateWithPriority(Stream**, unsigned, int);
int cuStreamCreate(Stream**, unsigned);
int cuStreamDestroy_v2(Stream*);
int cuStreamSynchronize(Stream*);
int cuStreamWaitEvent(Stream*, Event*, unsigned);
int cuEventCreate(Event**, unsigned);
int cuEventElapsedTime(float*, Event*, Event*);
int cuEventDestroy_v2(Event*);
int cuEventRecord(Event*, Stream*);
int cuEventQuery(Event*);
int cuEventSynchronize(Event*);
int cuModuleLoadData(Module**, const void*);
int cuModuleUnload(Module*);
int cuModuleGetFunction(Function**, Module*, const char*);
int cuLaunchKernel(Function*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream*, void**,
                   void**);
int cuGraphCreate(void**, unsigned);
int cuGraphDestroy(void*);
int cuGraphAddKernelNode_v2(void**, void*, void* const*, size_t, const rosin::cuda::KernelNode*);
int cuGraphAddMemcpyNode(void**, void*, void* const*, size_t, const rosin::cuda::Copy3D*, Context*);
int cuGraphAddMemsetNode(void**, void*, void* const*, size_t, const rosin::cuda::MemsetNode*, Context*);
int cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
int cuGraphExecDestroy(void*);
int cuGraphExecKernelNodeSetParams_v2(void*, void*, const rosin::cuda::KernelNode*);
int cuGraphExecMemcpyNodeSetParams(void*, void*, const rosin::cuda::Copy3D*, Context*);
int cuGraphExecMemsetNodeSetParams(void*, void*, const rosin::cuda::MemsetNode*, Context*);
int cuGraphLaunch(void*, Stream*);
int cuGraphAddChildGraphNode(void**, void*, void* const*, size_t, void*);
int cuGraphExecChildGraphNodeSetParams(void*, void*, void*);
int cuStreamBeginCapture_v2(Stream*, int);
int cuStreamEndCapture(Stream*, void**);
}

// A function that CUDA has under another name: its parameters, and how that one is called.
#define SAME_AS(name, parameters, call_of_cuda) \
  FAKE_HIP_API name parameters {                \
    const Named named(#name);                   \
    return call_of_cuda;                        \
  }

SAME_AS(hipGetDeviceCount, (int* count), cuDeviceGetCount(count))
SAME_AS(hipDeviceGet, (int* device, int ordinal), cuDeviceGet(device, ordinal))
SAME_AS(hipDeviceTotalMem, (size_t * bytes, int device), cuDeviceTotalMem_v2(bytes, device))
SAME_AS(hipDeviceGetPCIBusId, (char* text, int length, int device), cuDeviceGetPCIBusId(text, length, device))
SAME_AS(hipMemGetInfo, (size_t * left, size_t* total), cuMemGetInfo_v2(left, total))
SAME_AS(hipMalloc, (uint64_t * address, size_t bytes), cuMemAlloc_v2(address, bytes))
SAME_AS(hipFree, (uint64_t address), cuMemFree_v2(address))
SAME_AS(hipHostMalloc, (void** address, size_t bytes, unsigned flags), cuMemHostAlloc(address, bytes, flags))
SAME_AS(hipHostFree, (void* address), cuMemFreeHost(address))
SAME_AS(hipHostRegister, (void* address, size_t bytes, unsigned flags), cuMemHostRegister_v2(address, bytes, flags))
SAME_AS(hipHostUnregister, (void* address), cuMemHostUnregister(address))
SAME_AS(hipMemcpyDtoDAsync, (uint64_t to, uint64_t from, size_t bytes, Stream* stream),
        cuMemcpyDtoDAsync_v2(to, from, bytes, stream))
SAME_AS(hipMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, Stream* stream),
        cuMemsetD8Async(to, value, bytes, stream))
SAME_AS(hipDeviceCanAccessPeer, (int* reaches, int device, int other), cuDeviceCanAccessPeer(reaches, device, other))
SAME_AS(hipDeviceGetStreamPriorityRange, (int* least, int* greatest), cuCtxGetStreamPriorityRange(least, greatest))
SAME_AS(hipStreamCreateWithPriority, (Stream * *stream, unsigned flags, int priority),
        cuStreamCreateWithPriority(stream, flags, priority))
SAME_AS(hipStreamCreateWithFlags, (Stream * *stream, unsigned flags), cuStreamCreate(stream, flags))
SAME_AS(hipStreamDestroy, (Stream * stream), cuStreamDestroy_v2(stream))
SAME_AS(hipStreamSynchronize, (Stream * stream), cuStreamSynchronize(stream))
SAME_AS(hipStreamWaitEvent, (Stream * stream, Event* event, unsigned flags), cuStreamWaitEvent(stream, event, flags))
SAME_AS(hipEventCreateWithFlags, (Event * *event, unsigned flags), cuEventCreate(event, flags))
SAME_AS(hipEventElapsedTime, (float* time, Event* from, Event* to), cuEventElapsedTime(time, from, to))
SAME_AS(hipEventDestroy, (Event * event), cuEventDestroy_v2(event))
SAME_AS(hipEventRecord, (Event * event, Stream* stream), cuEventRecord(event, stream))
SAME_AS(hipEventQuery, (Event * event), cuEventQuery(event))
SAME_AS(hipEventSynchronize, (Event * event), cuEventSynchronize(event))
SAME_AS(hipModuleLoadData, (Module * *module, const void* image), cuModuleLoadData(module, image))
SAME_AS(hipModuleUnload, (Module * module), cuModuleUnload(module))
SAME_AS(hipModuleGetFunction, (Function * *function, Module* module, const char* name),
        cuModuleGetFunction(function, module, name))
SAME_AS(hipModuleLaunchKernel,
        (Function * function, unsigned x, unsigned y, unsigned z, unsigned items_x, unsigned items_y, unsigned items_z,
         unsigned shared, Stream* stream, void** parameters, void** extra),
        cuLaunchKernel(function, x, y, z, items_x, items_y, items_z, shared, stream, parameters, extra))

// ---- What HIP has otherwise.

FAKE_HIP_API hipInit(unsigned) {
  return call("hipInit", [](Machine& machine) {
    bool hidden = machine.options.devices == 0;
    for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
      const char* visible = getenv(name);
      hidden = hidden || (visible && (!*visible || *visible == '-'));
    }
    if (hidden) throw Trouble{no_device, "no ROCm-capable device is detected"};
  });
}

FAKE_HIP_API hipDriverGetVersion(int* version) {
  return call("hipDriverGetVersion", [&](Machine& machine) {
    const int given = machine.options.driver;
    *version = given == 13000 ? 60032831 : given;  // where FAKE_HIP says nothing of it
  });
}

extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(int code) {
  return code == success ? "hipSuccess" : code == out_of_memory ? "hipErrorOutOfMemory" : "hipError";
}
extern "C" __attribute__((visibility("default"))) const char* hipGetErrorString(int code) { return said_of(code); }

FAKE_HIP_API hipSetDevice(int device) {
  return call("hipSetDevice", [&](Machine& machine) { set_context(machine.context_of(device)); });
}

FAKE_HIP_API hipGetDevice(int* device) {
  const Named named("hipGetDevice");
  return call("hipGetDevice", [&](Machine&) { *device = context_now().device; });
}

FAKE_HIP_API hipStreamGetDevice(Stream* stream, int* device) {
  return call("hipStreamGetDevice", [&](Machine& machine) { *device = machine.checked(stream).context->device; });
}

FAKE_HIP_API hipDeviceGetName(char* name, int length, int device) {
  return call("hipDeviceGetName", [&](Machine& machine) {
    machine.context_of(device);
    std::snprintf(name, static_cast<size_t>(length), "AMD Pretended GPU %d", device);
  });
}

FAKE_HIP_API hipDeviceGetAttribute(int* value, DeviceAttribute attribute, int device) {
  return call("hipDeviceGetAttribute", [&](Machine& machine) {
    machine.context_of(device);
    switch (attribute) {
      case DeviceAttribute::l2_cache_size: *value = 1 << 20; break;
      case DeviceAttribute::max_threads_per_block: *value = 1024; break;
      case DeviceAttribute::multiprocessor_count: *value = 4; break;
      case DeviceAttribute::max_registers_per_block: *value = 65536; break;
      case DeviceAttribute::max_shared_memory_per_block: *value = 65536; break;
      case DeviceAttribute::warp_size: *value = static_cast<int>(machine.options.warp); break;
      default: throw Trouble{invalid_value, "no such attribute"};
    }
  });
}

/// That of HIP 5 has its name elsewhere; who calls it on HIP 6 gets another struct than expected.
FAKE_HIP_API hipGetDeviceProperties(Properties*, int) { return not_supported; }

FAKE_HIP_API hipGetDevicePropertiesR0600(Properties* properties, int device) {
  return call("hipGetDevicePropertiesR0600", [&](Machine& machine) {
    machine.context_of(device);
    std::strncpy(properties->all + Properties::name_in_hip_6, machine.options.gfx.c_str(), Properties::name_bytes - 1);
  });
}

/// Host memory that is not pinned is read, and written, when the copy's turn comes.
static int copy_late(const char* name, uint64_t device, size_t bytes, Stream* stream, void* to, const void* from) {
  const Named named(name);
  return call(name, [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(*known.context, device, bytes);
    Work work;
    work.addresses = {device};
    work.run = [to, from, bytes] { std::memcpy(to, from, bytes); };
    machine.give(known, std::move(work));
  });
}

FAKE_HIP_API hipMemcpyHtoDAsync(uint64_t to, const void* from, size_t bytes, Stream* stream) {
  return copy_late("hipMemcpyHtoDAsync", to, bytes, stream, reinterpret_cast<void*>(to), from);
}

FAKE_HIP_API hipMemcpyDtoHAsync(void* to, uint64_t from, size_t bytes, Stream* stream) {
  return copy_late("hipMemcpyDtoHAsync", from, bytes, stream, to, reinterpret_cast<const void*>(from));
}

FAKE_HIP_API hipMemcpyPeerAsync(uint64_t to, int to_device, uint64_t from, int from_device, size_t bytes,
                                Stream* stream) {
  return call("hipMemcpyPeerAsync", [&](Machine& machine) {
    Stream& known = stream_now(stream);
    machine.check_range(machine.context_of(from_device), from, bytes);
    machine.check_range(machine.context_of(to_device), to, bytes);
    Work work;
    work.addresses = {to, from};
    work.run = [to, from, bytes] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    };
    machine.give(known, std::move(work));
  });
}

// ---- Graphs; the arguments of nodes are others.

SAME_AS(hipGraphCreate, (void** graph, unsigned flags), cuGraphCreate(graph, flags))
SAME_AS(hipGraphDestroy, (void* graph), cuGraphDestroy(graph))
SAME_AS(hipGraphInstantiateWithFlags, (void** ready, void* graph, unsigned long long flags),
        cuGraphInstantiateWithFlags(ready, graph, flags))
SAME_AS(hipGraphExecDestroy, (void* ready), cuGraphExecDestroy(ready))
SAME_AS(hipGraphLaunch, (void* ready, Stream* stream), cuGraphLaunch(ready, stream))
SAME_AS(hipGraphAddChildGraphNode, (void** node, void* graph, void* const* behind, size_t count, void* inside),
        cuGraphAddChildGraphNode(node, graph, behind, count, inside))
SAME_AS(hipGraphExecChildGraphNodeSetParams, (void* ready, void* node, void* inside),
        cuGraphExecChildGraphNodeSetParams(ready, node, inside))
SAME_AS(hipStreamBeginCapture, (Stream * stream, int mode), cuStreamBeginCapture_v2(stream, mode))
SAME_AS(hipStreamEndCapture, (Stream * stream, void** graph), cuStreamEndCapture(stream, graph))

static rosin::cuda::KernelNode of_cuda(const rosin::amdgpu::KernelNode& given) {
  rosin::cuda::KernelNode node;
  node.function = given.function;
  for (int d = 0; d < 3; ++d) {
    node.grid[d] = given.grid[d];
    node.block[d] = given.block[d];
  }
  node.shared_bytes = given.shared_bytes;
  node.parameters = given.parameters;
  return node;
}

static rosin::cuda::MemsetNode of_cuda(const rosin::amdgpu::MemsetNode& given) {
  return {given.to, given.pitch, given.value, given.element_bytes, given.width, given.height};
}

static rosin::cuda::Copy3D of_cuda(void* to, const void* from, size_t bytes, rosin::amdgpu::CopyKind kind) {
  rosin::cuda::Copy3D node;
  node.from.device = reinterpret_cast<uint64_t>(from);
  if (kind == rosin::amdgpu::CopyKind::device_to_host) node.to.type = rosin::cuda::MemoryType::host;
  node.to.host = to;
  node.to.device = reinterpret_cast<uint64_t>(to);
  node.width_bytes = bytes;
  return node;
}

FAKE_HIP_API hipGraphAddKernelNode(void** node, void* graph, void* const* behind, size_t count,
                                   const rosin::amdgpu::KernelNode* given) {
  const Named named("hipGraphAddKernelNode");
  const rosin::cuda::KernelNode made = of_cuda(*given);
  return cuGraphAddKernelNode_v2(node, graph, behind, count, &made);
}

FAKE_HIP_API hipGraphExecKernelNodeSetParams(void* ready, void* node, const rosin::amdgpu::KernelNode* given) {
  const Named named("hipGraphExecKernelNodeSetParams");
  const rosin::cuda::KernelNode made = of_cuda(*given);
  return cuGraphExecKernelNodeSetParams_v2(ready, node, &made);
}

FAKE_HIP_API hipGraphAddMemsetNode(void** node, void* graph, void* const* behind, size_t count,
                                   const rosin::amdgpu::MemsetNode* given) {
  const Named named("hipGraphAddMemsetNode");
  const rosin::cuda::MemsetNode made = of_cuda(*given);
  return cuGraphAddMemsetNode(node, graph, behind, count, &made, nullptr);
}

FAKE_HIP_API hipGraphExecMemsetNodeSetParams(void* ready, void* node, const rosin::amdgpu::MemsetNode* given) {
  const Named named("hipGraphExecMemsetNodeSetParams");
  const rosin::cuda::MemsetNode made = of_cuda(*given);
  return cuGraphExecMemsetNodeSetParams(ready, node, &made, nullptr);
}

FAKE_HIP_API hipGraphAddMemcpyNode1D(void** node, void* graph, void* const* behind, size_t count, void* to,
                                     const void* from, size_t bytes, rosin::amdgpu::CopyKind kind) {
  const Named named("hipGraphAddMemcpyNode1D");
  const rosin::cuda::Copy3D made = of_cuda(to, from, bytes, kind);
  return cuGraphAddMemcpyNode(node, graph, behind, count, &made, nullptr);
}

FAKE_HIP_API hipGraphExecMemcpyNodeSetParams1D(void* ready, void* node, void* to, const void* from, size_t bytes,
                                               rosin::amdgpu::CopyKind kind) {
  const Named named("hipGraphExecMemcpyNodeSetParams1D");
  const rosin::cuda::Copy3D made = of_cuda(to, from, bytes, kind);
  return cuGraphExecMemcpyNodeSetParams(ready, node, &made, nullptr);
}
