// See miopen.hpp.
#include "amdgpu/miopen.hpp"

#include "amdgpu/device_libraries.hpp"
#include "vendor/convolution_trial.hpp"

namespace rosin::amdgpu {
namespace {

using driver::Failure;
using vendor::Convolution;
using vendor::ConvolutionTrial;
using vendor::DimOrder;

}  // namespace

Dnn::Dnn(const rosin_device& device)
    : reason_(dnn_library().reason()), order_(is_cdna(device.target) ? DimOrder::channels_first : DimOrder::planes),
      kernel_(device) {
  if (!reason_.empty()) return;
  try {
    handle_ = std::make_unique<DnnHandle>();
    try_out();
  } catch (const Failure& failure) {
    reason_ = failure.text;
  }
}

std::shared_ptr<DnnWays> Dnn::ways_of(const Convolution& convolution, uint64_t workspace) {
  return found_.of(key_of(convolution) + std::to_string(workspace),
                   [&] { return std::make_shared<DnnWays>(*handle_, kernel_, convolution, workspace); });
}

/// A true convolution of small integers must be exact.
void Dnn::try_out() {
  const ConvolutionTrial trial(order_, DimOrder::planes, true);
  if (computed(*this, trial, false) != trial.wanted()) {
    throw Failure{ROSIN_UNSUPPORTED, "MIOpen " + dnn_library().version() + " computes a small convolution wrongly"};
  }
}

Dnn& dnn_of(rosin_device& device) { return DeviceLibraries::of<Dnn>(device); }

}  // namespace rosin::amdgpu
