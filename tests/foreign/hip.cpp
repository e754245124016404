// The plug-in of AMDGPU beside HIP's own headers: structs, numbers and signatures must be the same. Compiled, never
// run; see ../hip_headers_test.py, which adds a line for each function that is looked up.
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "same.hpp"

#include "amdgpu/compiler.cpp"
#include "amdgpu/graphs.cpp"
#include "amdgpu/plugin.cpp"
#include "amdgpu/runtime.cpp"
#include "driver/memory.cpp"
#include "driver/streams.cpp"

namespace {

using same::same_call;
using namespace rosin::amdgpu;

/// Addresses on the device are pointers to HIP, numbers to the plug-in, by value or where one is put.
template <class A, class B> constexpr bool like_address() {
  using To = std::remove_cv_t<B>;
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<To>) {
    using Inside = std::remove_pointer_t<A>;
    return same::like<A, B>() || (sizeof(To) == 8 && like_address<Inside, std::remove_pointer_t<To>>());
  } else if constexpr (std::is_same_v<A, rosin::driver::Address>) {
    return std::is_pointer_v<To> || same::like<A, B>();
  } else {
    return same::like<A, B>();
  }
}
template <class A, class B> struct WithAddresses;
template <class R, class... Ps, class S, class... Qs> struct WithAddresses<R (*)(Ps...), S (*)(Qs...)> {
  static constexpr bool value = sizeof...(Ps) == sizeof...(Qs) && same::like<R, S>() && (like_address<Ps, Qs>() && ...);
};
template <class A, class B>
constexpr bool same_with_addresses = WithAddresses<std::remove_cvref_t<A>, std::remove_cvref_t<B>>::value;

static_assert(sizeof(KernelNode) == sizeof(hipKernelNodeParams));
STARTS_AT(KernelNode, block, hipKernelNodeParams, blockDim);
SAME_PLACE(KernelNode, extra, hipKernelNodeParams, extra);
SAME_PLACE(KernelNode, function, hipKernelNodeParams, func);
STARTS_AT(KernelNode, grid, hipKernelNodeParams, gridDim);
SAME_PLACE(KernelNode, parameters, hipKernelNodeParams, kernelParams);
SAME_PLACE(KernelNode, shared_bytes, hipKernelNodeParams, sharedMemBytes);

static_assert(sizeof(MemsetNode) == sizeof(hipMemsetParams));
SAME_PLACE(MemsetNode, to, hipMemsetParams, dst);
SAME_PLACE(MemsetNode, element_bytes, hipMemsetParams, elementSize);
SAME_PLACE(MemsetNode, height, hipMemsetParams, height);
SAME_PLACE(MemsetNode, pitch, hipMemsetParams, pitch);
SAME_PLACE(MemsetNode, value, hipMemsetParams, value);
SAME_PLACE(MemsetNode, width, hipMemsetParams, width);

static_assert(sizeof(hipDeviceProp_t) <= Properties::bytes);
SAME_NUMBER(HIP_VERSION_MAJOR >= 6 ? Properties::name_in_hip_6 : Properties::name_in_hip_5,
            offsetof(hipDeviceProp_t, gcnArchName));
SAME_NUMBER(Properties::name_bytes, sizeof(hipDeviceProp_t::gcnArchName));

SAME_NUMBER(Error::out_of_memory, hipErrorOutOfMemory);
SAME_NUMBER(Error::deinitialized, hipErrorDeinitialized);
SAME_NUMBER(Error::no_device, hipErrorNoDevice);
SAME_NUMBER(Error::invalid_device, hipErrorInvalidDevice);
SAME_NUMBER(Error::no_binary_for_gpu, hipErrorNoBinaryForGpu);
SAME_NUMBER(Error::ecc_not_correctable, hipErrorECCNotCorrectable);
SAME_NUMBER(Error::not_ready, hipErrorNotReady);
SAME_NUMBER(Error::illegal_address, hipErrorIllegalAddress);
SAME_NUMBER(Error::launch_timeout, hipErrorLaunchTimeOut);
SAME_NUMBER(Error::context_is_destroyed, hipErrorContextIsDestroyed);
SAME_NUMBER(Error::assertion, hipErrorAssert);
SAME_NUMBER(Error::launch_failure, hipErrorLaunchFailure);
SAME_NUMBER(Error::not_supported, hipErrorNotSupported);
SAME_NUMBER(Error::capture_unsupported, hipErrorStreamCaptureUnsupported);
SAME_NUMBER(Error::capture_invalidated, hipErrorStreamCaptureInvalidated);
SAME_NUMBER(Error::capture_merge, hipErrorStreamCaptureMerge);
SAME_NUMBER(Error::capture_unmatched, hipErrorStreamCaptureUnmatched);
SAME_NUMBER(Error::capture_unjoined, hipErrorStreamCaptureUnjoined);
SAME_NUMBER(Error::capture_isolation, hipErrorStreamCaptureIsolation);
SAME_NUMBER(Error::capture_implicit, hipErrorStreamCaptureImplicit);
SAME_NUMBER(Error::captured_event, hipErrorCapturedEvent);
SAME_NUMBER(Error::capture_wrong_thread, hipErrorStreamCaptureWrongThread);
SAME_NUMBER(Error::graph_update_failure, hipErrorGraphExecUpdateFailure);
SAME_NUMBER(Error::unknown, hipErrorUnknown);
SAME_NUMBER(DeviceAttribute::l2_cache_size, hipDeviceAttributeL2CacheSize);
SAME_NUMBER(DeviceAttribute::max_threads_per_block, hipDeviceAttributeMaxThreadsPerBlock);
SAME_NUMBER(DeviceAttribute::multiprocessor_count, hipDeviceAttributeMultiprocessorCount);
SAME_NUMBER(DeviceAttribute::max_registers_per_block, hipDeviceAttributeMaxRegistersPerBlock);
SAME_NUMBER(DeviceAttribute::max_shared_memory_per_block, hipDeviceAttributeMaxSharedMemoryPerBlock);
SAME_NUMBER(DeviceAttribute::warp_size, hipDeviceAttributeWarpSize);
SAME_NUMBER(CopyKind::device_to_host, hipMemcpyDeviceToHost);
SAME_NUMBER(CopyKind::device_to_device, hipMemcpyDeviceToDevice);
SAME_NUMBER(relaxed_capture, hipStreamCaptureModeRelaxed);
SAME_NUMBER(rosin::driver::beside_the_default_stream, hipStreamNonBlocking);
SAME_NUMBER(rosin::driver::without_timing, hipEventDisableTiming);
SAME_NUMBER(rosin::driver::portable, hipHostMallocPortable);
SAME_NUMBER(rosin::driver::portable, hipHostRegisterPortable);

using All = rosin::driver::Functions;
using Compiling = rosin::amdgpu::Compiler::Functions;
using Graphing = rosin::amdgpu::HipGraphs;
using Other = rosin::amdgpu::Hip;

}  // namespace
