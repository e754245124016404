// The plug-in of CUDA beside NVIDIA's own headers: structs, numbers and signatures must be the same. Compiled, never
// run, and with -fno-access-control; see ../cuda_headers_test.py, which adds a line for each function that is looked
// up.
#include <cuda.h>
#include <nvrtc.h>

#include "same.hpp"

#include "cuda/compiler.cpp"
#include "cuda/graphs.cpp"
#include "cuda/plugin.cpp"
#include "driver/memory.cpp"
#include "driver/streams.cpp"

namespace {

using same::same_call;

static_assert(same_call<int (*)(size_t, void**), CUresult (*)(unsigned long long, CUfunction*)>);
static_assert(!same_call<int (*)(int), CUresult (*)(size_t)>);
static_assert(!same_call<int (*)(int), CUresult (*)(int, int)>);
static_assert(!same_call<int (*)(int*), CUresult (*)(int)>);
static_assert(!same_call<int (*)(unsigned*), CUresult (*)(CUdeviceptr*)>);

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
SAME_NUMBER(Result::capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME_NUMBER(Result::capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME_NUMBER(Result::capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
SAME_NUMBER(Result::capture_unmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME_NUMBER(Result::capture_unjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
SAME_NUMBER(Result::capture_isolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME_NUMBER(Result::capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_NUMBER(Result::captured_event, CUDA_ERROR_CAPTURED_EVENT);
SAME_NUMBER(Result::graph_update_failure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME_NUMBER(Result::unknown, CUDA_ERROR_UNKNOWN);
SAME_NUMBER(relaxed_capture, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_NUMBER(DeviceAttribute::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_NUMBER(DeviceAttribute::max_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME_NUMBER(DeviceAttribute::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(DeviceAttribute::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(DeviceAttribute::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_NUMBER(DeviceAttribute::max_registers_per_block, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME_NUMBER(DeviceAttribute::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_NUMBER(DeviceAttribute::l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_NUMBER(DeviceAttribute::max_shared_memory_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_NUMBER(rosin::driver::beside_the_default_stream, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(rosin::driver::without_timing, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(rosin::driver::portable, CU_MEMHOSTALLOC_PORTABLE);

using All = rosin::driver::Functions;
using Compiling = rosin::cuda::Compiler::Functions;
using Graphing = rosin::cuda::CudaGraphs;

}  // namespace
