// The libraries of one device, each made when it is first asked for. Read first: driver/driver.hpp. Read next:
// blas.hpp, cudnn.hpp.
#pragma once

#include <memory>
#include <type_traits>

#include "cuda/blas.hpp"
#include "cuda/cudnn.hpp"
#include "driver/driver.hpp"

namespace rosin::cuda {

class DeviceLibraries final : public driver::Attached {
 public:
  template <class Library> static Library& of(rosin_device& device) {
    const std::lock_guard guard(device.attaching);
    if (!device.attached) device.attached = std::make_unique<DeviceLibraries>();
    std::unique_ptr<Library>& kept = static_cast<DeviceLibraries&>(*device.attached).slot((Library*)nullptr);
    if (!kept) {
      const driver::Current current(device);
      if constexpr (std::is_constructible_v<Library, const rosin_device&>) kept = std::make_unique<Library>(device);
      else kept = std::make_unique<Library>();
    }
    return *kept;
  }

 private:
  std::unique_ptr<Blas>& slot(Blas*) { return blas_; }
  std::unique_ptr<Dnn>& slot(Dnn*) { return dnn_; }

  std::unique_ptr<Blas> blas_;
  std::unique_ptr<Dnn> dnn_;
};

}  // namespace rosin::cuda
