// What gpu(x) asks for: the device of gpu_device(), without its notice. Read next: device_choice.cpp.
#pragma once

#include <rosin/device.hpp>

namespace rosin {

/// The device that gpu_device() returns; the CPU where there is no GPU.
Device chosen_gpu();

/// Whether a preference names the CPU, so that there is nothing to say where it is taken.
bool cpu_is_preferred();

}  // namespace rosin
