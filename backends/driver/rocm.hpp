// Where AMD's libraries are: the folders of ROSIN_ROCM_LIBRARIES, the system's, ROCm's (ROCM_PATH, HIP_PATH,
// /opt/rocm), that of Python's package _rocm_sdk_core. For plug-ins and transports. Read first: libraries.hpp.
#pragma once

#include "driver/libraries.hpp"

namespace rosin::driver {

inline const Places& rocm_places() {
  static const Places all{"ROSIN_ROCM_LIBRARIES", {"ROCM_PATH", "HIP_PATH"}, "lib", "/opt/rocm/lib", "_rocm_sdk_core"};
  return all;
}

/// The HIP runtime, the newest first.
inline std::vector<std::string> hip_names() { return {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}; }

}  // namespace rosin::driver
