// Convolutions and attention of cuDNN as vendor calls: which are taken, and how each is prepared. Read first:
// vendor/ways_call.hpp, cudnn.hpp.
#include <algorithm>

#include "cuda/calls.hpp"
#include "cuda/cudnn.hpp"
#include "vendor/ways_call.hpp"

namespace rosin::cuda {
namespace {

using driver::Failure;

/// Refuses what this device's library does not compute, whatever the sizes.
Dnn& checked(rosin_device& device, const rosin_call_description& call) {
  check_convolution(call);
  Dnn& dnn = dnn_of(device);
  if (!dnn.reason().empty()) throw Failure{ROSIN_UNSUPPORTED, dnn.reason()};
  if (call.epilogue.bias && !dnn.takes_epilogues()) {
    throw Failure{ROSIN_UNSUPPORTED, "cuDNN: no bias goes along, or its relu makes numbers of NaN"};
  }
  return dnn;
}

Choice<uint64_t> choice_on(const rosin_device& device) { return {"cudnn   ", dnn_library().version(), device}; }

/// Images with their channels first; weights as rosin has them, which cuDNN turns where its engine wants that.
void take(rosin_device& device, const rosin_call_description& call, int32_t* orders) {
  checked(device, call);
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const int32_t role = call.arrays[i].role;
    const bool image = role == ROSIN_ROLE_INPUT || role == ROSIN_ROLE_OUTPUT || role == ROSIN_ROLE_INPUT_GRADIENT ||
                       role == ROSIN_ROLE_OUTPUT_GRADIENT;
    orders[i] = image ? ROSIN_ORDER_CHANNELS_FIRST : ROSIN_ORDER_CONTIGUOUS;
  }
}

std::unique_ptr<rosin_call> prepare(rosin_device& device, const rosin_call_description& wanted, uint64_t* workspace) {
  Dnn& dnn = checked(device, wanted);
  return ways_call(device, dnn, dnn.ways_of(convolution_of(wanted), Workspace::limit(wanted)), choice_on(device),
                   wanted, workspace);
}

/// The same of attention.
Dnn& checked_attention(rosin_device& device, const rosin_call_description& call) {
  check_attention(call);
  Dnn& dnn = dnn_of(device);
  const driver::Current current(device);
  const std::string& reason = dnn.attention_reason();
  if (!reason.empty()) throw Failure{ROSIN_UNSUPPORTED, reason};
  return dnn;
}

/// Sequences stand where they stand: slices of larger arrays too.
void take_attention(rosin_device& device, const rosin_call_description& call, int32_t* orders) {
  checked_attention(device, call);
  std::fill_n(orders, call.array_count, int32_t{ROSIN_ORDER_STRIDED});
}

/// Gradients that are the same each time want room for all weights in halves, others for sums in Float32: as much as
/// the arrays have, or a small part of the device's memory.
uint64_t room_of(const Dnn& dnn, const rosin_call_description& wanted, const Attention& attention) {
  if (wanted.workspace > 0) return Workspace::limit(wanted);
  uint64_t all = Workspace::most;
  for (const uint64_t bytes : attention.bytes) all += bytes;
  return std::max(all, dnn.large_room());
}

std::unique_ptr<rosin_call> prepare_attention(rosin_device& device, const rosin_call_description& wanted,
                                              uint64_t* workspace) {
  Dnn& dnn = checked_attention(device, wanted);
  const Attention attention = attention_of(wanted);
  // NVIDIA's own front end goes around this with lengths of each sequence.
  const bool uneven = attention.k.sizes[2] % 128 != 0;
  if (attention.gradient && uneven && !dnn_library().is_at_least(9, 16)) {
    throw Failure{ROSIN_UNSUPPORTED, "cuDNN: before 9.16 its gradient of attention wants a multiple of 128 keys"};
  }
  return ways_call(device, dnn, dnn.ways_of(attention, room_of(dnn, wanted, attention)), choice_on(device), wanted,
                   workspace);
}

}  // namespace

const CallMaker dnn_calls{take, prepare};
const CallMaker attention_calls{take_attention, prepare_attention};

}  // namespace rosin::cuda
