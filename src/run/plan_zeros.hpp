// PlanZeros: memory of a plan on its device that is 0 before and after each run: flags of checks, counters of groups
// that arrive. Read first: open_device.hpp.
#pragma once

#include <cstddef>

#include "run/device_pool.hpp"

namespace rosin {

class OpenDevice;

/// A block of zeros, to be given back by release(). Error (memory).
DeviceBlock* zeros(OpenDevice& device, size_t bytes);

class PlanZeros {
 public:
  /// Error (memory).
  PlanZeros(OpenDevice& device, size_t bytes) : device_(device), block_(zeros(device, bytes)) {}
  PlanZeros(const PlanZeros&) = delete;
  PlanZeros& operator=(const PlanZeros&) = delete;
  /// Runs may be under way: who gets the memory next waits for them.
  ~PlanZeros();

  DeviceBlock& block() const noexcept { return *block_; }

 private:
  OpenDevice& device_;
  DeviceBlock* block_;
};

}  // namespace rosin
