// The numbers of hipBLASLt, as its documentation gives them (hipblaslt.h, hipblas-common.h; ROCm 6 and later, and those
// of ROCm 5.7, whose own types it has). tests/hip_headers_test.py compares them with the real headers where they are
// there. Read first: vendor/blas_types.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vendor/blas_types.hpp"

namespace rosin::amdgpu::blas {

using namespace vendor::blas;

/// hipblasStatus_t, beside success
enum Status : int {
  not_initialized = 1,
  alloc_failed = 2,
  invalid_value = 3,
  mapping_error = 4,
  execution_failed = 5,
  internal_error = 6,
  not_supported = 7,
  arch_mismatch = 8
};

/// hipDataType
enum class Type : int { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14 };

/// hipblasComputeType_t
enum class Compute : int { float32 = 2, fast_float16 = 4, fast_bfloat16 = 5, fast_tf32 = 6, float64 = 7 };

/// hipblasLtMatrixLayoutAttribute_t
enum class LayoutAttribute : int { batch_count = 0, batch_stride = 1 };

/// hipblasLtMatmulDescAttributes_t
enum class OperationAttribute : int {
  transpose_a = 0,
  transpose_b = 1,
  epilogue = 2,
  bias_pointer = 3,
  bias_type = 4,
  auxiliary_pointer = 10,
  auxiliary_leading = 11,
  auxiliary_batch_stride = 12
};

/// hipblasLtMatmulPreferenceAttributes_t
enum class PreferenceAttribute : int { workspace = 1 };

/// Words of hipblasLtMatmulAlgo_t
constexpr size_t algorithm_words = 3;

/// HIPBLAS_OP_T
constexpr int32_t transposed = 112;

/// What ROCm 5.7 has otherwise: hipblasDatatype_t, hipblasLtComputeType_t, hipblasLtMatmulDescAttributes_t.
enum class TypeOf5 : int { float16 = 150, float32 = 151, float64 = 152, bfloat16 = 168 };
enum class ComputeOf5 : int { float32 = 300, fast_tf32 = 301 };
enum class OperationAttributeOf5 : int { auxiliary_pointer = 6, auxiliary_leading = 7, auxiliary_batch_stride = 8 };

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
                        .bias_type = n(OperationAttribute::bias_type),
                        .auxiliary_pointer = n(OperationAttribute::auxiliary_pointer),
                        .auxiliary_leading = n(OperationAttribute::auxiliary_leading),
                        .auxiliary_batch_stride = n(OperationAttribute::auxiliary_batch_stride)},
          .preference = {n(PreferenceAttribute::workspace), none, {none, none, none, none}},
          .in_compute_type = 0,
          .any_reduction = 0,
          .transposed = transposed};
}

constexpr Numbers numbers_of_5() {
  const auto n = [](auto number) { return static_cast<int>(number); };
  Numbers made = numbers();
  made.type = {n(TypeOf5::float32), n(TypeOf5::float64), n(TypeOf5::float16), n(TypeOf5::bfloat16)};
  made.compute = {n(ComputeOf5::float32), none, none, n(ComputeOf5::fast_tf32), none};
  made.operation.auxiliary_pointer = n(OperationAttributeOf5::auxiliary_pointer);
  made.operation.auxiliary_leading = n(OperationAttributeOf5::auxiliary_leading);
  made.operation.auxiliary_batch_stride = n(OperationAttributeOf5::auxiliary_batch_stride);
  return made;
}

}  // namespace rosin::amdgpu::blas
