// Which library of AMD's answers which vendor call. Read first: vendor/calls.hpp.
#include "vendor/calls.hpp"

const rosin::vendor::CallMaker& rosin::vendor::maker_of(int32_t kind) {
  switch (kind) {
    case ROSIN_CALL_MATMUL: return blas_calls;
    default: throw driver::Failure{ROSIN_UNSUPPORTED, "AMDGPU: no library is asked for calls of this kind"};
  }
}
