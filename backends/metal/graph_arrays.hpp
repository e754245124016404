// Arrays of calls as MPSGraph takes them. Nothing of Metal is called here. Read first: rosin/backend.h (Vendor calls).
// Read next: graph.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/backend.h>

namespace rosin::metal {

/// MPSDataType
constexpr uint32_t data_float16 = 0x10000000 | 16, data_float32 = 0x10000000 | 32, data_bfloat16 = 0x90000000 | 16;

/// Throws ROSIN_UNSUPPORTED: rosin's own kernels compute the call.
[[noreturn]] void refuse(const char* why);

using Sizes = std::vector<int64_t>;

/// An array of a call: its elements follow each other without gaps, in some order of its dims.
struct Packed {
  uint32_t type = 0;      // MPSDataType
  uint64_t bytes = 0;     // of all elements
  Sizes memory;           // its sizes as they lie, the slowest dim first
  Sizes sizes;            // the same from the last of its dims to the first, which is how tensors of graphs have them
  Sizes turn, turn_back;  // which dim of `memory` is dim i of `sizes`, and the other way
};
/// Throws ROSIN_UNSUPPORTED where there are gaps, or a type that graphs have not.
Packed packed(const rosin_call_array& array);

/// MPSDataType of a rosin_type. Throws as packed().
uint32_t data_type(int32_t type);

/// Which array of the call has this role. Throws ROSIN_UNSUPPORTED where none has.
int place_of(const rosin_call_description& call, int32_t role);

}  // namespace rosin::metal
