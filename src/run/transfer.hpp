// Transfers: arrays from one device to another. A transfer happens at the call: what it copies is evaluated first, so
// no plan holds nodes of two devices. It is an op with a gradient, which is transferred back.
// Read first: devices.hpp.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>

namespace rosin {

/// x on the device at `position`; x itself where it is there. Its element type stays. Error (device, memory, backend).
Array transferred(const Array& x, int position);
/// Bytes of arrays copied between the host and devices since the start of the process.
struct CopiedBytes {
  int64_t to_devices = 0;
  int64_t from_devices = 0;
};
CopiedBytes copied_bytes() noexcept;
/// Names the memory of an array in messages about memory: its path in a model.
void label_memory(const Array& x, const std::string& path);

}  // namespace rosin
