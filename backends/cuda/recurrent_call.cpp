// Recurrent layers of cuDNN as vendor calls. Read first: calls.hpp, cudnn_recurrent.hpp.
#include <algorithm>
#include <vector>

#include "cuda/calls.hpp"
#include "cuda/cudnn_recurrent.hpp"
#include "vendor/roles.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using driver::Stream;

/// Refuses what this device's library does not compute, whatever the sizes.
Dnn& checked(rosin_device& device, const rosin_call_description& call) {
  check_recurrent(call);
  Dnn& dnn = dnn_of(device);
  const driver::Current current(device);
  const std::string& reason = dnn.recurrent_reason();
  if (!reason.empty()) throw Failure{ROSIN_UNSUPPORTED, reason};
  return dnn;
}

/// Where each array of a run is, by its role.
Address RecurrentArrays::*place_for(int32_t role) {
  switch (role) {
    case ROSIN_ROLE_INPUT: return &RecurrentArrays::x;
    case ROSIN_ROLE_WEIGHTS: return &RecurrentArrays::weights;
    case ROSIN_ROLE_FIRST_STATE: return &RecurrentArrays::h;
    case ROSIN_ROLE_FIRST_CELL: return &RecurrentArrays::c;
    case ROSIN_ROLE_OUTPUT: return &RecurrentArrays::y;
    case ROSIN_ROLE_LAST_STATE: return &RecurrentArrays::last_h;
    case ROSIN_ROLE_LAST_CELL: return &RecurrentArrays::last_c;
    case ROSIN_ROLE_OUTPUT_GRADIENT: return &RecurrentArrays::dy;
    case ROSIN_ROLE_LAST_STATE_GRADIENT: return &RecurrentArrays::last_dh;
    case ROSIN_ROLE_LAST_CELL_GRADIENT: return &RecurrentArrays::last_dc;
    case ROSIN_ROLE_INPUT_GRADIENT: return &RecurrentArrays::dx;
    case ROSIN_ROLE_WEIGHTS_GRADIENT: return &RecurrentArrays::dweights;
    case ROSIN_ROLE_FIRST_STATE_GRADIENT: return &RecurrentArrays::dh;
    case ROSIN_ROLE_FIRST_CELL_GRADIENT: return &RecurrentArrays::dc;
    default: return &RecurrentArrays::reserve;
  }
}

uint64_t bytes_of(const rosin_call_array& array, uint64_t element) {
  uint64_t count = array.type == ROSIN_UINT8 ? 1 : element;
  for (int32_t d = 0; d < array.rank; ++d) count *= static_cast<uint64_t>(array.sizes[d]);
  return count;
}

/// A layer, or its gradient. Its room holds the library's, then what the library wants and the call does not have.
class RecurrentCall final : public rosin_call {
 public:
  RecurrentCall(rosin_device& on, Dnn& dnn, const rosin_call_description& call)
      : computed_(dnn, recurrent_of(call)), keeps_(place_of(call, ROSIN_ROLE_RESERVE) >= 0) {
    device = &on;
    const Recurrent& layer = computed_.layer();
    for (uint32_t i = 0; i < call.array_count; ++i) {
      arrays_.push_back({place_for(call.arrays[i].role), bytes_of(call.arrays[i], layer.element_bytes())});
    }
    if (keeps_ && arrays_[static_cast<size_t>(place_of(call, ROSIN_ROLE_RESERVE))].bytes < computed_.reserve()) {
      throw Failure{ROSIN_INVALID, "recurrent: a reserve that is smaller than call_reserve says"};
    }
    room_ = rounded(computed_.workspace(keeps_));
    const auto has = [&](int32_t role) { return place_of(call, role) >= 0; };
    const uint64_t outputs = static_cast<uint64_t>(layer.out * layer.steps * layer.batch) * layer.element_bytes();
    if (!has(ROSIN_ROLE_OUTPUT)) y_ = take(outputs);
    if (!layer.gradient) return;
    if (!has(ROSIN_ROLE_OUTPUT_GRADIENT)) dy_ = take(zero_bytes_ = outputs);
    if (!has(ROSIN_ROLE_INPUT_GRADIENT)) {
      dx_ = take(static_cast<uint64_t>(layer.features * layer.steps * layer.batch) * layer.element_bytes());
    }
    reserve_ = take(computed_.reserve());  // a copy, as the gradient spends it
  }

  uint64_t workspace() const { return Workspace::asked(room_); }

  void run(Stream stream, const rosin_place* buffers, rosin_place workspace, const rosin_call_numbers*) override {
    RecurrentArrays at;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      at.*arrays_[i].place = Workspace::address_of(buffers[i], arrays_[i].bytes);
    }
    at.workspace = Workspace::in(workspace, room_);
    if (y_ != none) at.y = at.workspace + y_;
    if (computed_.layer().gradient) run_gradient(stream, at);
    else computed_.forward(stream, at);
  }

  /// There is one way.
  uint64_t tune(Stream, const rosin_place*, rosin_place, uint64_t, const rosin_call_numbers*) override {
    return workspace();
  }
  std::string_view choice() override { return {}; }

 private:
  static constexpr uint64_t none = ~uint64_t{0};
  struct Array {
    Address RecurrentArrays::*place;
    uint64_t bytes;
  };

  static uint64_t rounded(uint64_t bytes) {
    return (bytes + Workspace::alignment - 1) / Workspace::alignment * Workspace::alignment;
  }
  uint64_t take(uint64_t bytes) {
    const uint64_t at = room_;
    room_ += rounded(bytes);
    return at;
  }

  void run_gradient(Stream stream, RecurrentArrays& at) const {
    const driver::Driver& driver = driver::the_driver();
    const auto zero = [&](Address to, uint64_t bytes) {
      driver.check(driver::needed(driver.functions.fill, "zeros")(to, 0, bytes, stream), "zeros");
    };
    if (dy_ != none) zero(at.dy = at.workspace + dy_, zero_bytes_);
    if (dx_ != none) at.dx = at.workspace + dx_;
    const Recurrent& layer = computed_.layer();
    if (at.dweights) zero(at.dweights, static_cast<uint64_t>(layer.parameters()) * layer.element_bytes());
    const Address kept = at.reserve;
    at.reserve = at.workspace + reserve_;
    driver.check(driver.functions.copy(at.reserve, kept, computed_.reserve(), stream), "copy of a reserve");
    computed_.backward(stream, at);
  }

  DnnRecurrent computed_;
  bool keeps_;
  std::vector<Array> arrays_;  // of the call
  uint64_t room_ = 0;
  uint64_t y_ = none, dy_ = none, dx_ = none, reserve_ = none, zero_bytes_ = 0;  // places in the room
};

void take(rosin_device& device, const rosin_call_description& call, int32_t* orders) {
  checked(device, call);
  std::fill_n(orders, call.array_count, int32_t{ROSIN_ORDER_CONTIGUOUS});
}

std::unique_ptr<rosin_call> prepare(rosin_device& device, const rosin_call_description& wanted, uint64_t* workspace) {
  auto call = std::make_unique<RecurrentCall>(device, checked(device, wanted), wanted);
  *workspace = call->workspace();
  return call;
}

}  // namespace

const CallMaker recurrent_calls{take, prepare};

rosin_status call_reserve(rosin_device* device, const rosin_call_description* description, uint64_t* bytes) {
  return driver::guarded([&] {
    const rosin_call_description call = known_fields(*description);
    if (call.kind != ROSIN_CALL_RECURRENT && call.kind != ROSIN_CALL_RECURRENT_DATA) {
      throw Failure{ROSIN_UNSUPPORTED, "CUDA: calls of this kind keep nothing"};
    }
    Dnn& dnn = checked(*device, call);
    const driver::Current current(*device);
    *bytes = DnnRecurrent(dnn, recurrent_of(call)).reserve();
  });
}

}  // namespace rosin::cuda
