// What the plug-in of CUDA says of cuBLASLt beside NVIDIA's own headers. Compiled, never run, and with
// -fno-access-control; see ../cuda_headers_test.py, which adds a line for each function that is looked up.
#include <cublasLt.h>

#include "same.hpp"

#include "cuda/cublaslt.cpp"

namespace {

using same::same_call;
using namespace rosin::cuda::blas;

using Candidate = Found<algorithm_words>;
static_assert(sizeof(Candidate::words) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Candidate) == sizeof(cublasLtMatmulHeuristicResult_t));
SAME_PLACE(Candidate, words, cublasLtMatmulHeuristicResult_t, algo);
SAME_PLACE(Candidate, facts.workspace, cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_PLACE(Candidate, facts.status, cublasLtMatmulHeuristicResult_t, state);
SAME_PLACE(Candidate, facts.waves, cublasLtMatmulHeuristicResult_t, wavesCount);

SAME_NUMBER(success, CUBLAS_STATUS_SUCCESS);
SAME_NUMBER(not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME_NUMBER(alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
SAME_NUMBER(invalid_value, CUBLAS_STATUS_INVALID_VALUE);
SAME_NUMBER(arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
SAME_NUMBER(mapping_error, CUBLAS_STATUS_MAPPING_ERROR);
SAME_NUMBER(execution_failed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME_NUMBER(internal_error, CUBLAS_STATUS_INTERNAL_ERROR);
SAME_NUMBER(not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME_NUMBER(Type::float32, CUDA_R_32F);
SAME_NUMBER(Type::float64, CUDA_R_64F);
SAME_NUMBER(Type::float16, CUDA_R_16F);
SAME_NUMBER(Type::bfloat16, CUDA_R_16BF);
SAME_NUMBER(Compute::float32, CUBLAS_COMPUTE_32F);
SAME_NUMBER(Compute::fast_float16, CUBLAS_COMPUTE_32F_FAST_16F);
SAME_NUMBER(Compute::fast_bfloat16, CUBLAS_COMPUTE_32F_FAST_16BF);
SAME_NUMBER(Compute::fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME_NUMBER(Compute::float64, CUBLAS_COMPUTE_64F);
SAME_NUMBER(LayoutAttribute::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_NUMBER(LayoutAttribute::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_NUMBER(OperationAttribute::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
SAME_NUMBER(OperationAttribute::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
SAME_NUMBER(OperationAttribute::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME_NUMBER(OperationAttribute::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_NUMBER(OperationAttribute::auxiliary_pointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME_NUMBER(OperationAttribute::auxiliary_leading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME_NUMBER(OperationAttribute::auxiliary_batch_stride, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
SAME_NUMBER(plain, CUBLASLT_EPILOGUE_DEFAULT);
SAME_NUMBER(relu, CUBLASLT_EPILOGUE_RELU);
SAME_NUMBER(bias, CUBLASLT_EPILOGUE_BIAS);
SAME_NUMBER(relu | bias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME_NUMBER(relu | auxiliary, CUBLASLT_EPILOGUE_RELU_AUX);
SAME_NUMBER(relu | auxiliary | bias, CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
SAME_NUMBER(relu_gradient | auxiliary, CUBLASLT_EPILOGUE_DRELU);
SAME_NUMBER(relu_gradient | auxiliary | sums_of_result, CUBLASLT_EPILOGUE_DRELU_BGRAD);
SAME_NUMBER(gelu, CUBLASLT_EPILOGUE_GELU);
SAME_NUMBER(gelu | bias, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME_NUMBER(gelu | auxiliary, CUBLASLT_EPILOGUE_GELU_AUX);
SAME_NUMBER(gelu | auxiliary | bias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME_NUMBER(gelu_gradient | auxiliary, CUBLASLT_EPILOGUE_DGELU);
SAME_NUMBER(gelu_gradient | auxiliary | sums_of_result, CUBLASLT_EPILOGUE_DGELU_BGRAD);
SAME_NUMBER(sums_of_left, CUBLASLT_EPILOGUE_BGRADA);
SAME_NUMBER(PreferenceAttribute::workspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_NUMBER(PreferenceAttribute::reductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_NUMBER(PreferenceAttribute::alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_NUMBER(PreferenceAttribute::alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_NUMBER(PreferenceAttribute::alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_NUMBER(PreferenceAttribute::alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_NUMBER(in_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME_NUMBER(any_reduction, CUBLASLT_REDUCTION_SCHEME_MASK);
SAME_NUMBER(transposed, CUBLAS_OP_T);
SAME_NUMBER(Property::major, MAJOR_VERSION);
SAME_NUMBER(Property::minor, MINOR_VERSION);
SAME_NUMBER(Property::patch, PATCH_LEVEL);

static_assert(same_call<PropertyFunction, decltype(&::cublasLtGetProperty)>);

using Multiplying = rosin::vendor::blas::Functions;

}  // namespace
