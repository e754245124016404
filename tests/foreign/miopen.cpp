// What the plug-in of AMDGPU says of MIOpen beside MIOpen's own header. Compiled, never run, and with
// -fno-access-control; see ../hip_headers_test.py, which adds a line for each function that is looked up.
#include <miopen/miopen.h>

#include "same.hpp"

#include "amdgpu/miopen_library.cpp"

namespace {

using same::same_call;
using namespace rosin::amdgpu::miopen;

SAME_NUMBER(success, miopenStatusSuccess);
SAME_NUMBER(not_initialized, miopenStatusNotInitialized);
SAME_NUMBER(invalid_value, miopenStatusInvalidValue);
SAME_NUMBER(bad_parameter, miopenStatusBadParm);
SAME_NUMBER(allocation_failed, miopenStatusAllocFailed);
SAME_NUMBER(internal_error, miopenStatusInternalError);
SAME_NUMBER(not_implemented, miopenStatusNotImplemented);
SAME_NUMBER(unknown_error, miopenStatusUnknownError);
SAME_NUMBER(unsupported_operation, miopenStatusUnsupportedOp);
SAME_NUMBER(Type::float16, miopenHalf);
SAME_NUMBER(Type::float32, miopenFloat);
SAME_NUMBER(Type::bfloat16, miopenBFloat16);
SAME_NUMBER(Layout::planes, miopenTensorNCHW);
SAME_NUMBER(Layout::channels_first, miopenTensorNHWC);
SAME_NUMBER(Layout::planes_of_three, miopenTensorNCDHW);
SAME_NUMBER(Layout::channels_first_of_three, miopenTensorNDHWC);
SAME_NUMBER(Mode::cross_correlation, miopenConvolution);
SAME_NUMBER(Attribute::float16_as_bfloat16, MIOPEN_CONVOLUTION_ATTRIB_FP16_ALT_IMPL);
SAME_NUMBER(Attribute::deterministic, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC);
SAME_NUMBER(Algorithm::product, miopenConvolutionAlgoGEMM);
SAME_NUMBER(Algorithm::direct, miopenConvolutionAlgoDirect);
SAME_NUMBER(Algorithm::fourier, miopenConvolutionAlgoFFT);
SAME_NUMBER(Algorithm::winograd, miopenConvolutionAlgoWinograd);
SAME_NUMBER(Algorithm::implicit_product, miopenConvolutionAlgoImplicitGEMM);

static_assert(sizeof(Solution) == sizeof(miopenConvSolution_t));
SAME_PLACE(Solution, milliseconds, miopenConvSolution_t, time);
SAME_PLACE(Solution, workspace, miopenConvSolution_t, workspace_size);
SAME_PLACE(Solution, id, miopenConvSolution_t, solution_id);
SAME_PLACE(Solution, algorithm, miopenConvSolution_t, algorithm);
static_assert(sizeof(Measured) == sizeof(miopenConvAlgoPerf_t));
SAME_PLACE(Measured, algorithm, miopenConvAlgoPerf_t, fwd_algo);
SAME_PLACE(Measured, milliseconds, miopenConvAlgoPerf_t, time);
SAME_PLACE(Measured, workspace, miopenConvAlgoPerf_t, memory);

using Convolving = rosin::amdgpu::miopen::Functions;

}  // namespace
