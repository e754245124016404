// Transfers: arrays from one device to another. A transfer happens at the call: what it copies is evaluated first, so
// no plan holds nodes of two devices. It is an op with a gradient, which is transferred back.
// Read next: memory.hpp (what copies), run/transfer.hpp (the copies of plug-ins).
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// x on the device at `position`; x itself where it is there. Its element type stays. Error (device, memory, backend).
Array transferred(const Array& x, int position);

}  // namespace rosin
