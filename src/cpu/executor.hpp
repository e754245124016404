// The CPU as a device. Read next: plan/device.hpp, fused.hpp (kernels), call.hpp (calls).
#pragma once

#include "plan/device.hpp"

namespace rosin::cpu {

/// The one executor of the CPU.
plan::DeviceExecutor& executor();

/// See Hooks.
bool attends_bfloats() noexcept;

}  // namespace rosin::cpu
