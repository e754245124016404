// Which library is asked for which vendor call. See calls.hpp.
#include "cuda/calls.hpp"

#include "cuda/matmul.hpp"

namespace rosin::cuda {
namespace {

const CallMaker& maker_of(const rosin_call_description& call) {
  switch (call.kind) {
    case ROSIN_CALL_MATMUL: return blas_calls;
    case ROSIN_CALL_CONVOLUTION:
    case ROSIN_CALL_CONVOLUTION_DATA:
    case ROSIN_CALL_CONVOLUTION_WEIGHTS: return dnn_calls;
    case ROSIN_CALL_ATTENTION:
    case ROSIN_CALL_ATTENTION_DATA: return attention_calls;
    case ROSIN_CALL_RECURRENT:
    case ROSIN_CALL_RECURRENT_DATA: return recurrent_calls;
    default: throw driver::Failure{ROSIN_UNSUPPORTED, "CUDA: no library is asked for calls of this kind"};
  }
}

}  // namespace

rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders) {
  return driver::guarded([&] {
    const rosin_call_description call = known_fields(*description);
    maker_of(call).take(*device, call, orders);
  });
}

rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
  return driver::guarded([&] {
    const rosin_call_description wanted = known_fields(*description);
    const CallMaker& maker = maker_of(wanted);
    const driver::Current current(*device);
    *out = maker.prepare(*device, wanted, workspace).release();
  });
}

}  // namespace rosin::cuda
