// MIOpen, opened at run time: the convolutions that it computes for a device. Where it is missing, too old or does not
// work, rosin goes on with kernels of its own. Read first: miopen_ways.hpp. Read next: miopen_call.cpp.
#pragma once

#include <memory>
#include <string>

#include "amdgpu/miopen_ways.hpp"
#include "vendor/found_once.hpp"

namespace rosin::amdgpu {

/// MIOpen on one device.
class Dnn {
 public:
  /// With the device's context current. A first convolution is computed; reason() says where that fails.
  explicit Dnn(const rosin_device& device);

  const std::string& reason() const { return reason_; }
  /// How images lie that it computes fastest: with their channels first where matrix units of CDNA are, else in planes.
  vendor::DimOrder order() const { return order_; }
  /// The ways of a call, found once: those that were found are kept. Throws ROSIN_UNSUPPORTED where there is none.
  std::shared_ptr<DnnWays> ways_of(const vendor::Convolution& convolution, uint64_t workspace);

  static void run(driver::Stream stream, DnnWays& ways, size_t way, const driver::Address* arrays,
                  driver::Address workspace) {
    ways.run(stream, way, arrays, workspace);
  }
  static void search(driver::Stream stream, DnnWays& ways, const driver::Address* arrays, driver::Address workspace,
                     uint64_t bytes) {
    ways.search(stream, arrays, workspace, bytes);
  }

 private:
  void try_out();

  std::string reason_;
  vendor::DimOrder order_;
  WeightKernel kernel_;
  std::unique_ptr<DnnHandle> handle_;
  vendor::FoundOnce<DnnWays> found_;  // whose ways use those two
};

/// That of the device, made when it is first asked for.
Dnn& dnn_of(rosin_device& device);

}  // namespace rosin::amdgpu
