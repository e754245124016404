// What recording knows of devices: how they are called, and which types they have. Who gives a device its position
// notes it here.
#pragma once

#include <string>

namespace rosin {

struct DeviceFacts {
  std::string text;  // "CUDA:0"
  bool float64;      // whether it has elements of 64-bit floats
};

/// Once for each position from 1 to 255, before an array stands on the device.
void note_device(int position, DeviceFacts facts);
/// Of the CPU at 0, or of a device that was noted; from any thread.
const DeviceFacts& device_facts(int position);
inline const std::string& device_text(int position) { return device_facts(position).text; }

}  // namespace rosin
