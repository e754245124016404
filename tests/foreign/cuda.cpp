// The plug-in of CUDA beside NVIDIA's own headers: structs, numbers and signatures must be the same. Compiled, never
// run, and with -fno-access-control; see ../cuda_headers_test.py, which adds a line for each function that is looked
// up.
#include <cuda.h>
#include <nvrtc.h>

#include <cstddef>
#include <type_traits>

#include "cuda/compiler.cpp"
#include "cuda/graphs.cpp"
#include "cuda/plugin.cpp"
#include "driver/memory.cpp"
#include "driver/streams.cpp"

namespace {

/// Whether a function that expects A can be given B: numbers of one size, pointers to such, handles of any name.
template <class A, class B> constexpr bool like() {
  using From = std::remove_cv_t<A>;
  using To = std::remove_cv_t<B>;
  if constexpr (std::is_pointer_v<From> != std::is_pointer_v<To>) return false;
  else if constexpr (std::is_pointer_v<From>) return like<std::remove_pointer_t<From>, std::remove_pointer_t<To>>();
  else if constexpr (std::is_void_v<From> || std::is_void_v<To>) return true;
  else if constexpr (std::is_class_v<From> && std::is_class_v<To>) return true;
  else return std::is_class_v<From> == std::is_class_v<To> && sizeof(From) == sizeof(To);
}

template <class A, class B> struct Same;
template <class R, class... Ps, class S, class... Qs> struct Same<R (*)(Ps...), S (*)(Qs...)> {
  template <class... As> struct List {};
  template <class... As, class... Bs> static constexpr bool all(List<As...>, List<Bs...>) {
    if constexpr (sizeof...(As) != sizeof...(Bs)) return false;
    else return (like<As, Bs>() && ...);
  }
  static constexpr bool value = like<R, S>() && all(List<Ps...>{}, List<Qs...>{});
};
template <class A, class B> constexpr bool same_call = Same<std::remove_cvref_t<A>, std::remove_cvref_t<B>>::value;

static_assert(same_call<int (*)(size_t, void**), CUresult (*)(unsigned long long, CUfunction*)>);
static_assert(!same_call<int (*)(int), CUresult (*)(size_t)>);
static_assert(!same_call<int (*)(int), CUresult (*)(int, int)>);
static_assert(!same_call<int (*)(int*), CUresult (*)(int)>);
static_assert(!same_call<int (*)(unsigned*), CUresult (*)(CUdeviceptr*)>);

#define SAME_PLACE(Ours, field, Theirs, theirs)                      \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, theirs) && \
                sizeof(std::declval<Ours>().field) == sizeof(std::declval<Theirs>().theirs))
#define STARTS_AT(Ours, field, Theirs, theirs) static_assert(offsetof(Ours, field) == offsetof(Theirs, theirs))

using namespace rosin::cuda;

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME_PLACE(KernelNode, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
STARTS_AT(KernelNode, grid[0], CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
STARTS_AT(KernelNode, grid[1], CUDA_KERNEL_NODE_PARAMS_v2, gridDimY);
STARTS_AT(KernelNode, grid[2], CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ);
STARTS_AT(KernelNode, block[0], CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
STARTS_AT(KernelNode, block[2], CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ);
SAME_PLACE(KernelNode, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_PLACE(KernelNode, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_PLACE(KernelNode, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
SAME_PLACE(KernelNode, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_PLACE(KernelNode, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

static_assert(sizeof(Copy3D) == sizeof(CUDA_MEMCPY3D));
SAME_PLACE(Copy3D, from.x_bytes, CUDA_MEMCPY3D, srcXInBytes);
SAME_PLACE(Copy3D, from.y, CUDA_MEMCPY3D, srcY);
SAME_PLACE(Copy3D, from.z, CUDA_MEMCPY3D, srcZ);
SAME_PLACE(Copy3D, from.level, CUDA_MEMCPY3D, srcLOD);
SAME_PLACE(Copy3D, from.type, CUDA_MEMCPY3D, srcMemoryType);
SAME_PLACE(Copy3D, from.host, CUDA_MEMCPY3D, srcHost);
SAME_PLACE(Copy3D, from.device, CUDA_MEMCPY3D, srcDevice);
SAME_PLACE(Copy3D, from.array, CUDA_MEMCPY3D, srcArray);
SAME_PLACE(Copy3D, from.reserved, CUDA_MEMCPY3D, reserved0);
SAME_PLACE(Copy3D, from.pitch, CUDA_MEMCPY3D, srcPitch);
SAME_PLACE(Copy3D, from.height, CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(Copy3D, to.x_bytes, CUDA_MEMCPY3D, dstXInBytes);
SAME_PLACE(Copy3D, to.type, CUDA_MEMCPY3D, dstMemoryType);
SAME_PLACE(Copy3D, to.host, CUDA_MEMCPY3D, dstHost);
SAME_PLACE(Copy3D, to.device, CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(Copy3D, to.height, CUDA_MEMCPY3D, dstHeight);
SAME_PLACE(Copy3D, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
SAME_PLACE(Copy3D, height, CUDA_MEMCPY3D, Height);
SAME_PLACE(Copy3D, depth, CUDA_MEMCPY3D, Depth);
static_assert(static_cast<int>(MemoryType::host) == CU_MEMORYTYPE_HOST);
static_assert(static_cast<int>(MemoryType::device) == CU_MEMORYTYPE_DEVICE);

static_assert(sizeof(MemsetNode) == sizeof(CUDA_MEMSET_NODE_PARAMS));
SAME_PLACE(MemsetNode, to, CUDA_MEMSET_NODE_PARAMS, dst);
SAME_PLACE(MemsetNode, pitch, CUDA_MEMSET_NODE_PARAMS, pitch);
SAME_PLACE(MemsetNode, value, CUDA_MEMSET_NODE_PARAMS, value);
SAME_PLACE(MemsetNode, element_bytes, CUDA_MEMSET_NODE_PARAMS, elementSize);
SAME_PLACE(MemsetNode, width, CUDA_MEMSET_NODE_PARAMS, width);
SAME_PLACE(MemsetNode, height, CUDA_MEMSET_NODE_PARAMS, height);

#define SAME_NUMBER(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
SAME_NUMBER(Result::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(Result::deinitialized, CUDA_ERROR_DEINITIALIZED);
SAME_NUMBER(Result::no_device, CUDA_ERROR_NO_DEVICE);
SAME_NUMBER(Result::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_NUMBER(Result::not_ready, CUDA_ERROR_NOT_READY);
SAME_NUMBER(Result::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_NUMBER(Result::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_NUMBER(Result::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_NUMBER(Result::assertion, CUDA_ERROR_ASSERT);
SAME_NUMBER(Result::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_NUMBER(Result::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME_NUMBER(Result::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME_NUMBER(Result::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME_NUMBER(Result::invalid_pc, CUDA_ERROR_INVALID_PC);
SAME_NUMBER(Result::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
SAME_NUMBER(Result::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME_NUMBER(Result::unknown, CUDA_ERROR_UNKNOWN);
SAME_NUMBER(DeviceAttribute::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_NUMBER(DeviceAttribute::max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME_NUMBER(DeviceAttribute::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(DeviceAttribute::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(rosin::driver::beside_the_default_stream, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(rosin::driver::without_timing, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(rosin::driver::portable, CU_MEMHOSTALLOC_PORTABLE);

using All = rosin::driver::Functions;
using Compiling = rosin::cuda::Compiler::Functions;
using Graphing = rosin::cuda::CudaGraphs;

}  // namespace
