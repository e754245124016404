// Convolutions of MIOpen as vendor calls: which are taken, and how each is prepared. Read first: vendor/ways_call.hpp,
// miopen.hpp.
#include <algorithm>

#include "amdgpu/calls.hpp"
#include "amdgpu/miopen.hpp"
#include "vendor/ways_call.hpp"

namespace rosin::amdgpu {
namespace {

using driver::Failure;
using vendor::Choice;
using vendor::DimOrder;
using vendor::Workspace;

[[noreturn]] void refuse(const std::string& why) { throw Failure{ROSIN_UNSUPPORTED, why}; }

/// Refuses what this device's library does not compute, whatever the sizes.
Dnn& checked(rosin_device& device, const rosin_call_description& call) {
  vendor::check_convolution(call);
  if (call.arrays[0].type == ROSIN_FLOAT64) refuse("MIOpen: it has next to no solvers for Float64");
  if (call.epilogue.bias) refuse("MIOpen: a bias goes along in few shapes, which it does not tell before sizes");
  const rosin_call_window& window = call.window;
  if (!std::equal(window.pad_low, window.pad_low + 3, window.pad_high)) {
    refuse("MIOpen: padding on one side is that on the other");
  }
  Dnn& dnn = dnn_of(device);
  if (!dnn.reason().empty()) refuse(dnn.reason());
  return dnn;
}

/// Images in the order that the device is fastest in; weights as rosin has them, which are turned where they are not
/// what MIOpen wants.
void take(rosin_device& device, const rosin_call_description& call, int32_t* orders) {
  const bool channels_first = checked(device, call).order() == DimOrder::channels_first;
  for (uint32_t i = 0; i < call.array_count; ++i) {
    const int32_t role = call.arrays[i].role;
    const bool weights = role == ROSIN_ROLE_WEIGHTS || role == ROSIN_ROLE_WEIGHTS_GRADIENT;
    orders[i] = channels_first && !weights ? ROSIN_ORDER_CHANNELS_FIRST : ROSIN_ORDER_CONTIGUOUS;
  }
}

std::unique_ptr<rosin_call> prepare(rosin_device& device, const rosin_call_description& wanted, uint64_t* workspace) {
  Dnn& dnn = checked(device, wanted);
  return vendor::ways_call(device, dnn, dnn.ways_of(vendor::convolution_of(wanted), Workspace::limit(wanted)),
                           Choice<uint64_t>("miopen  ", dnn_library().version(), device), wanted, workspace);
}

}  // namespace

const vendor::CallMaker dnn_calls{take, prepare};

}  // namespace rosin::amdgpu
