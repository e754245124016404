// See plan_zeros.hpp.
#include "run/plan_zeros.hpp"

#include <vector>

#include "run/open_device.hpp"

namespace rosin {

DeviceBlock* zeros(OpenDevice& device, size_t bytes) {
  DeviceBlock* block = device.pool.allocate(bytes);
  try {
    const std::vector<char> values(bytes, 0);
    device.upload(*block, values.data(), bytes);
  } catch (...) {
    release(block);
    throw;
  }
  return block;
}

PlanZeros::~PlanZeros() {
  device_.compute().has_written(*block_, device_.compute().last());
  release(block_);
}

}  // namespace rosin
