// Structs and numbers of HIP that calls exchange, as its documentation gives them (hip_runtime_api.h, HIP 5.2 to 7).
// tests/hip_headers_test.py compares them, and the signatures of the functions, with the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::amdgpu {

/// hipError_t, as far as something is done about it.
enum class Error : int {
  out_of_memory = 2,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  no_binary_for_gpu = 209,
  ecc_not_correctable = 214,
  not_ready = 600,
  illegal_address = 700,
  launch_timeout = 702,
  context_is_destroyed = 709,
  assertion = 710,
  launch_failure = 719,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  capture_wrong_thread = 908,
  graph_update_failure = 910,
  unknown = 999
};

/// hipDeviceAttribute_t, as far as it is asked for.
enum class DeviceAttribute : int {
  l2_cache_size = 19,
  max_threads_per_block = 56,
  multiprocessor_count = 63,
  max_registers_per_block = 71,
  max_shared_memory_per_block = 74,
  warp_size = 87
};

/// hipMemcpyKind
enum class CopyKind : int { device_to_host = 2, device_to_device = 3 };

/// hipStreamCaptureModeRelaxed: other threads go on as if there was no capture.
constexpr int relaxed_capture = 2;

/// hipDeviceProp_t, of which only this is read: the architecture with its features, "gfx90a:sramecc+:xnack-". HIP 6
/// moved it, and the function with the new struct has a name of its own.
struct Properties {
  static constexpr size_t name_bytes = 256, bytes = 4096;  // the real ones are shorter
  static constexpr size_t name_in_hip_5 = 396, name_in_hip_6 = 1160;
  alignas(16) char all[bytes] = {};
};

/// hipKernelNodeParams
struct KernelNode {
  unsigned block[3] = {};
  void** extra = nullptr;
  void* function = nullptr;
  unsigned grid[3] = {};
  void** parameters = nullptr;
  unsigned shared_bytes = 0;
};

/// hipMemsetParams
struct MemsetNode {
  uint64_t to = 0;
  unsigned element_bytes = 1;
  size_t height = 1, pitch = 0;
  unsigned value = 0;
  size_t width = 0;
};

}  // namespace rosin::amdgpu
