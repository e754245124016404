// Which array of a call has a role.
#pragma once

#include <rosin/backend.h>

namespace rosin::vendor {

/// -1: none.
inline int place_of(const rosin_call_description& call, int32_t role) {
  for (uint32_t i = 0; i < call.array_count; ++i) {
    if (call.arrays[i].role == role) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace rosin::vendor
