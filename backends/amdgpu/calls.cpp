// See calls.hpp.
#include "amdgpu/calls.hpp"

const rosin::vendor::CallMaker& rosin::vendor::maker_of(int32_t kind) {
  switch (kind) {
    case ROSIN_CALL_MATMUL: return blas_calls;
    case ROSIN_CALL_CONVOLUTION:
    case ROSIN_CALL_CONVOLUTION_DATA:
    case ROSIN_CALL_CONVOLUTION_WEIGHTS: return amdgpu::dnn_calls;
    default: throw driver::Failure{ROSIN_UNSUPPORTED, "AMDGPU: no library is asked for calls of this kind"};
  }
}
