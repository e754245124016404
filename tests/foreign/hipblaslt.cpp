// What the plug-in of AMDGPU says of hipBLASLt beside AMD's own headers. Compiled, never run, and with
// -fno-access-control; see ../hip_headers_test.py, which adds a line for each function that is looked up.
#include <hip/hip_version.h>
#if HIP_VERSION_MAJOR < 6
#define __HIP_PLATFORM_HCC__  // by which hipblaslt.h of ROCm 5 knows the platform
#endif
#include <hipblaslt/hipblaslt.h>

#include "same.hpp"

#include "amdgpu/hipblaslt.cpp"

namespace {

using same::same_call;
using namespace rosin::amdgpu::blas;

using Candidate = Found<algorithm_words>;
static_assert(sizeof(Candidate) == sizeof(hipblasLtMatmulHeuristicResult_t));
static_assert(sizeof(Candidate::words) == sizeof(hipblasLtMatmulAlgo_t));
SAME_PLACE(Candidate, words, hipblasLtMatmulHeuristicResult_t, algo);
SAME_PLACE(Candidate, facts.workspace, hipblasLtMatmulHeuristicResult_t, workspaceSize);
SAME_PLACE(Candidate, facts.status, hipblasLtMatmulHeuristicResult_t, state);
SAME_PLACE(Candidate, facts.waves, hipblasLtMatmulHeuristicResult_t, wavesCount);

SAME_NUMBER(success, HIPBLAS_STATUS_SUCCESS);
SAME_NUMBER(not_initialized, HIPBLAS_STATUS_NOT_INITIALIZED);
SAME_NUMBER(alloc_failed, HIPBLAS_STATUS_ALLOC_FAILED);
SAME_NUMBER(invalid_value, HIPBLAS_STATUS_INVALID_VALUE);
SAME_NUMBER(mapping_error, HIPBLAS_STATUS_MAPPING_ERROR);
SAME_NUMBER(execution_failed, HIPBLAS_STATUS_EXECUTION_FAILED);
SAME_NUMBER(internal_error, HIPBLAS_STATUS_INTERNAL_ERROR);
SAME_NUMBER(not_supported, HIPBLAS_STATUS_NOT_SUPPORTED);
SAME_NUMBER(arch_mismatch, HIPBLAS_STATUS_ARCH_MISMATCH);
SAME_NUMBER(LayoutAttribute::batch_count, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_NUMBER(LayoutAttribute::batch_stride, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_NUMBER(OperationAttribute::transpose_a, HIPBLASLT_MATMUL_DESC_TRANSA);
SAME_NUMBER(OperationAttribute::transpose_b, HIPBLASLT_MATMUL_DESC_TRANSB);
SAME_NUMBER(OperationAttribute::epilogue, HIPBLASLT_MATMUL_DESC_EPILOGUE);
SAME_NUMBER(OperationAttribute::bias_pointer, HIPBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_NUMBER(OperationAttribute::bias_type, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
#if HIP_VERSION_MAJOR >= 6
SAME_NUMBER(Type::float32, HIP_R_32F);
SAME_NUMBER(Type::float64, HIP_R_64F);
SAME_NUMBER(Type::float16, HIP_R_16F);
SAME_NUMBER(Type::bfloat16, HIP_R_16BF);
SAME_NUMBER(Compute::float32, HIPBLAS_COMPUTE_32F);
SAME_NUMBER(Compute::fast_float16, HIPBLAS_COMPUTE_32F_FAST_16F);
SAME_NUMBER(Compute::fast_bfloat16, HIPBLAS_COMPUTE_32F_FAST_16BF);
SAME_NUMBER(Compute::fast_tf32, HIPBLAS_COMPUTE_32F_FAST_TF32);
SAME_NUMBER(Compute::float64, HIPBLAS_COMPUTE_64F);
SAME_NUMBER(OperationAttribute::auxiliary_pointer, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME_NUMBER(OperationAttribute::auxiliary_leading, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME_NUMBER(OperationAttribute::auxiliary_batch_stride, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
#else
SAME_NUMBER(TypeOf5::float32, HIPBLAS_R_32F);
SAME_NUMBER(TypeOf5::float64, HIPBLAS_R_64F);
SAME_NUMBER(TypeOf5::float16, HIPBLAS_R_16F);
SAME_NUMBER(TypeOf5::bfloat16, HIPBLAS_R_16B);
SAME_NUMBER(ComputeOf5::float32, HIPBLASLT_COMPUTE_F32);
SAME_NUMBER(ComputeOf5::fast_tf32, HIPBLASLT_COMPUTE_F32_FAST_XF32);
SAME_NUMBER(OperationAttributeOf5::auxiliary_pointer, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME_NUMBER(OperationAttributeOf5::auxiliary_leading, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME_NUMBER(OperationAttributeOf5::auxiliary_batch_stride, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
#endif
SAME_NUMBER(plain, HIPBLASLT_EPILOGUE_DEFAULT);
SAME_NUMBER(relu, HIPBLASLT_EPILOGUE_RELU);
SAME_NUMBER(bias, HIPBLASLT_EPILOGUE_BIAS);
SAME_NUMBER(relu | bias, HIPBLASLT_EPILOGUE_RELU_BIAS);
SAME_NUMBER(gelu, HIPBLASLT_EPILOGUE_GELU);
SAME_NUMBER(gelu | bias, HIPBLASLT_EPILOGUE_GELU_BIAS);
SAME_NUMBER(gelu | auxiliary, HIPBLASLT_EPILOGUE_GELU_AUX);
SAME_NUMBER(gelu | auxiliary | bias, HIPBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME_NUMBER(gelu_gradient | auxiliary, HIPBLASLT_EPILOGUE_DGELU);
SAME_NUMBER(gelu_gradient | auxiliary | sums_of_result, HIPBLASLT_EPILOGUE_DGELU_BGRAD);
SAME_NUMBER(sums_of_left, HIPBLASLT_EPILOGUE_BGRADA);
SAME_NUMBER(PreferenceAttribute::workspace, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_NUMBER(transposed, HIPBLAS_OP_T);

using Multiplying = rosin::vendor::blas::Functions;

}  // namespace
