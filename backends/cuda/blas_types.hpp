// The numbers of cuBLASLt, as its documentation gives them (cublasLt.h, cublas_api.h, CUDA 11.8 and later).
// tests/cuda_headers_test.py compares them with the real headers where they are there. Read first:
// vendor/blas_types.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vendor/blas_types.hpp"

namespace rosin::cuda::blas {

using namespace vendor::blas;

/// cublasStatus_t, beside success
enum Status : int {
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

/// Words of cublasLtMatmulAlgo_t
constexpr size_t algorithm_words = 8;

/// CUBLAS_OP_T
constexpr int32_t transposed = 1;

/// libraryPropertyType
enum class Property : int { major = 0, minor = 1, patch = 2 };
using PropertyFunction = int (*)(Property which, int* value);

constexpr Numbers numbers() {
  const auto n = [](auto number) { return static_cast<int>(number); };
  return {.status = {not_initialized, alloc_failed, invalid_value, arch_mismatch, not_supported, mapping_error,
                     execution_failed, internal_error},
          .type = {n(Type::float32), n(Type::float64), n(Type::float16), n(Type::bfloat16)},
          .compute = {n(Compute::float32), n(Compute::fast_float16), n(Compute::fast_bfloat16), n(Compute::fast_tf32),
                      n(Compute::float64)},
          .layout = {n(LayoutAttribute::batch_count), n(LayoutAttribute::batch_stride)},
          .operation = {.transpose_a = n(OperationAttribute::transpose_a),
                        .transpose_b = n(OperationAttribute::transpose_b),
                        .epilogue = n(OperationAttribute::epilogue),
                        .bias_pointer = n(OperationAttribute::bias_pointer),
                        .bias_type = none,
                        .auxiliary_pointer = n(OperationAttribute::auxiliary_pointer),
                        .auxiliary_leading = n(OperationAttribute::auxiliary_leading),
                        .auxiliary_batch_stride = n(OperationAttribute::auxiliary_batch_stride)},
          .preference = {n(PreferenceAttribute::workspace),
                         n(PreferenceAttribute::reductions),
                         {n(PreferenceAttribute::alignment_a), n(PreferenceAttribute::alignment_b),
                          n(PreferenceAttribute::alignment_c), n(PreferenceAttribute::alignment_d)}},
          .in_compute_type = in_compute_type,
          .any_reduction = any_reduction,
          .transposed = transposed};
}

}  // namespace rosin::cuda::blas
