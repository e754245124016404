// The libraries of one device, each made when it is first asked for. Read first: driver/driver.hpp. Read next:
// blas.hpp.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>

#include "driver/driver.hpp"

namespace rosin::vendor {

/// One of each of these, made of the device.
template <class... Libraries> class DeviceLibraries final : public driver::Attached {
 public:
  template <class Library> static Library& of(rosin_device& device) {
    const std::lock_guard guard(device.attaching);
    if (!device.attached) device.attached = std::make_unique<DeviceLibraries>();
    auto& kept = std::get<std::unique_ptr<Library>>(static_cast<DeviceLibraries&>(*device.attached).all_);
    if (!kept) {
      const driver::Current current(device);
      kept = std::make_unique<Library>(device);
    }
    return *kept;
  }

 private:
  std::tuple<std::unique_ptr<Libraries>...> all_;
};

}  // namespace rosin::vendor
