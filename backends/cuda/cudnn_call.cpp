// Convolutions and attention of cuDNN as vendor calls: which are taken, how each is prepared, run and timed. Read
// first: calls.hpp, cudnn.hpp.
#include <algorithm>
#include <limits>

#include "cuda/calls.hpp"
#include "cuda/cudnn.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using driver::Stream;

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

/// A plan of cuDNN.
class DnnCall final : public rosin_call {
 public:
  DnnCall(rosin_device& on, Dnn& dnn, std::shared_ptr<DnnWays> ways)
      : dnn_(dnn), ways_(std::move(ways)), way_(ways_->first()), choice_("cudnn   ", dnn_library().version(), on) {
    device = &on;
  }

  uint64_t workspace() const { return Workspace::asked(ways_->workspace(way_)); }

  /// Takes the way of another call, if it is one for this.
  void take(const void* bytes, uint64_t count) {
    uint64_t mark = 0;
    if (!choice_.read(bytes, count, mark)) return;
    for (size_t way = 0; way < ways_->count(); ++way) {
      if (ways_->mark(way) == mark && ways_->build(way)) way_ = way;
    }
  }

  void run(Stream stream, const rosin_place* buffers, rosin_place workspace, const rosin_call_numbers*) override {
    const std::vector<uint64_t>& bytes = ways_->graph().bytes;
    Address arrays[most_call_arrays] = {};
    for (size_t i = 0; i < bytes.size(); ++i) arrays[i] = Workspace::address_of(buffers[i], bytes[i]);
    dnn_.run(stream, *ways_, way_, arrays, Workspace::in(workspace, ways_->workspace(way_)));
  }

  uint64_t tune(Stream stream, const rosin_place* buffers, rosin_place workspace, uint64_t bytes,
                const rosin_call_numbers* numbers) override {
    size_t best = way_;
    float least = std::numeric_limits<float>::infinity();
    for (size_t way = 0; way < ways_->count(); ++way) {
      if (!ways_->build(way) || Workspace::asked(ways_->workspace(way)) > bytes) continue;
      way_ = way;
      const float time = time_of([&] { run(stream, buffers, workspace, numbers); }, stream);
      if (time < least) best = way;
      least = std::min(least, time);
    }
    way_ = best;
    return this->workspace();
  }

  std::string_view choice() override {
    choice_.way = ways_->mark(way_);
    return choice_.bytes();
  }

 private:
  Dnn& dnn_;
  std::shared_ptr<DnnWays> ways_;
  size_t way_;
  Choice<uint64_t> choice_;
};

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
  auto call = std::make_unique<DnnCall>(device, dnn, dnn.ways_of(convolution_of(wanted), Workspace::limit(wanted)));
  call->take(wanted.choice, wanted.choice_bytes);
  *workspace = call->workspace();
  return call;
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

/// Gradients want room for sums in Float32: as much as the arrays have.
uint64_t room_of(const rosin_call_description& wanted, const Attention& attention) {
  if (wanted.workspace > 0) return Workspace::limit(wanted);
  uint64_t all = Workspace::most;
  for (const uint64_t bytes : attention.bytes) all += bytes;
  return all;
}

std::unique_ptr<rosin_call> prepare_attention(rosin_device& device, const rosin_call_description& wanted,
                                              uint64_t* workspace) {
  Dnn& dnn = checked_attention(device, wanted);
  const Attention attention = attention_of(wanted);
  auto call = std::make_unique<DnnCall>(device, dnn, dnn.ways_of(attention, room_of(wanted, attention)));
  call->take(wanted.choice, wanted.choice_bytes);
  *workspace = call->workspace();
  return call;
}

}  // namespace

const CallMaker dnn_calls{take, prepare};
const CallMaker attention_calls{take_attention, prepare_attention};

}  // namespace rosin::cuda
