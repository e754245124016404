// The libraries of one device of CUDA's. Read first: vendor/device_libraries.hpp. Read next: vendor/blas.hpp,
// cudnn.hpp.
#pragma once

#include "cuda/cudnn.hpp"
#include "vendor/blas.hpp"
#include "vendor/device_libraries.hpp"

namespace rosin::cuda {

using DeviceLibraries = vendor::DeviceLibraries<vendor::Blas, Dnn>;

}  // namespace rosin::cuda
