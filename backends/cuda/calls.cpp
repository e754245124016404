// See calls.hpp.
#include "cuda/calls.hpp"

const rosin::vendor::CallMaker& rosin::vendor::maker_of(int32_t kind) {
  switch (kind) {
    case ROSIN_CALL_MATMUL: return blas_calls;
    case ROSIN_CALL_CONVOLUTION:
    case ROSIN_CALL_CONVOLUTION_DATA:
    case ROSIN_CALL_CONVOLUTION_WEIGHTS: return cuda::dnn_calls;
    case ROSIN_CALL_ATTENTION:
    case ROSIN_CALL_ATTENTION_DATA: return cuda::attention_calls;
    case ROSIN_CALL_RECURRENT:
    case ROSIN_CALL_RECURRENT_DATA: return cuda::recurrent_calls;
    default: throw driver::Failure{ROSIN_UNSUPPORTED, "CUDA: no library is asked for calls of this kind"};
  }
}
