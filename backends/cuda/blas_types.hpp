// What calls of cuBLASLt exchange, as its documentation gives it (cublasLt.h, cublas_api.h, CUDA 11.8 and later).
// tests/cuda_headers_test.py compares it with the real headers where they are there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::cuda::blas {

using Handle = struct OpaqueHandle*;
using Operation = struct OpaqueOperation*;    // cublasLtMatmulDesc_t
using Layout = struct OpaqueLayout*;          // cublasLtMatrixLayout_t
using Preference = struct OpaquePreference*;  // cublasLtMatmulPreference_t

/// cublasStatus_t
enum Status : int {
  success = 0,
  not_initialized = 1,
  alloc_failed = 3,
  invalid_value = 7,
  arch_mismatch = 8,
  mapping_error = 11,
  execution_failed = 13,
  internal_error = 14,
  not_supported = 15
};

/// cudaDataType_t
enum class Type : int { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14 };

/// cublasComputeType_t
enum class Compute : int { float32 = 68, fast_float16 = 74, fast_bfloat16 = 75, fast_tf32 = 77, float64 = 70 };

/// cublasLtMatrixLayoutAttribute_t
enum class LayoutAttribute : int { batch_count = 5, batch_stride = 6 };

/// cublasLtMatmulDescAttributes_t
enum class OperationAttribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias_pointer = 8,
  auxiliary_pointer = 11,
  auxiliary_leading = 12,
  auxiliary_batch_stride = 13
};

/// cublasLtEpilogue_t: bits of one number, `plain` where none is set
enum Epilogue : uint32_t {
  plain = 1,
  relu = 2,
  bias = 4,
  relu_gradient = 8,  // with `auxiliary`
  sums_of_result = 16,
  gelu = 32,
  gelu_gradient = 64,  // with `auxiliary`
  auxiliary = 128,
  sums_of_left = 256
};

/// cublasLtMatmulPreferenceAttributes_t
enum class PreferenceAttribute : int {
  workspace = 1,
  reductions = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8
};

/// cublasLtReductionScheme_t; bits of one number. What is left out here adds into the result in place.
enum Reduction : uint32_t { in_compute_type = 2, any_reduction = 7 };

/// cublasLtMatmulAlgo_t
struct Algorithm {
  uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

/// CUBLAS_OP_T
constexpr int32_t transposed = 1;

/// libraryPropertyType
enum class Property : int { major = 0, minor = 1, patch = 2 };

/// The functions of the library, by their names without its prefix.
struct Functions {
  int (*property)(Property which, int* value);
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*operation_create)(Operation* operation, Compute compute, Type scale);
  int (*operation_destroy)(Operation operation);
  int (*operation_set)(Operation operation, OperationAttribute which, const void* value, size_t bytes);
  int (*layout_create)(Layout* layout, Type type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(Layout layout);
  int (*layout_set)(Layout layout, LayoutAttribute which, const void* value, size_t bytes);
  int (*preference_create)(Preference* preference);
  int (*preference_destroy)(Preference preference);
  int (*preference_set)(Preference preference, PreferenceAttribute which, const void* value, size_t bytes);
  int (*candidates)(Handle handle, Operation operation, Layout a, Layout b, Layout c, Layout d, Preference preference,
                    int wanted, Candidate* found, int* count);
  int (*check)(Handle handle, Operation operation, Layout a, Layout b, Layout c, Layout d, const Algorithm* algorithm,
               Candidate* checked);
  int (*matmul)(Handle handle, Operation operation, const void* alpha, const void* a, Layout a_layout, const void* b,
                Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout,
                const Algorithm* algorithm, void* workspace, size_t workspace_bytes, void* stream);
};

}  // namespace rosin::cuda::blas
