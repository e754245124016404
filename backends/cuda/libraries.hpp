// Where NVIDIA's libraries are looked for: the folders of ROSIN_CUDA_LIBRARIES, the system's, the CUDA toolkit
// (CUDA_HOME, CUDA_PATH, /usr/local/cuda), Python's packages (nvidia/*/lib). Read first: driver/libraries.hpp.
#pragma once

#include <string>
#include <vector>

#include "driver/libraries.hpp"

namespace rosin::cuda {

using driver::Library;

inline const driver::Places& places() {
  static const driver::Places all{
      "ROSIN_CUDA_LIBRARIES", {"CUDA_HOME", "CUDA_PATH"}, "lib64", "/usr/local/cuda/lib64", "nvidia"};
  return all;
}

inline Library open_library(const std::vector<std::string>& names) { return driver::open_library(places(), names); }

}  // namespace rosin::cuda
