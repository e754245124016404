// Structs and numbers of the CUDA driver API that calls exchange, as its documentation gives them (cuda.h, CUDA 12 and
// later). tests/cuda_headers_test.py compares them, and the signatures of the functions, with the real headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::cuda {

/// CUresult, as far as something is done about it.
enum class Result : int {
  out_of_memory = 2,
  deinitialized = 4,
  no_device = 100,
  ecc_uncorrectable = 214,
  not_ready = 600,
  illegal_address = 700,
  launch_timeout = 702,
  context_is_destroyed = 709,
  assertion = 710,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  graph_update_failure = 910,
  unknown = 999
};

/// CUdevice_attribute, as far as it is asked for.
enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  max_shared_memory_per_block = 8,
  warp_size = 10,
  max_registers_per_block = 12,
  multiprocessor_count = 16,
  l2_cache_size = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_block_optin = 97
};

/// CU_STREAM_CAPTURE_MODE_RELAXED: other threads go on as if there was no capture.
constexpr int relaxed_capture = 2;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  void* function = nullptr;
  unsigned grid[3] = {}, block[3] = {};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  void* context = nullptr;
};

/// CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE
enum class MemoryType : unsigned { host = 1, device = 2 };

/// One side of CUDA_MEMCPY3D
struct CopySide {
  size_t x_bytes = 0, y = 0, z = 0, level = 0;
  MemoryType type = MemoryType::device;
  void* host = nullptr;
  uint64_t device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t pitch = 0, height = 0;
};

/// CUDA_MEMCPY3D
struct Copy3D {
  CopySide from, to;
  size_t width_bytes = 0, height = 1, depth = 1;
};

/// CUDA_MEMSET_NODE_PARAMS
struct MemsetNode {
  uint64_t to = 0;
  size_t pitch = 0;
  unsigned value = 0, element_bytes = 1;
  size_t width = 0, height = 1;
};

}  // namespace rosin::cuda
