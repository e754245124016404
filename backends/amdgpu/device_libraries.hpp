// The libraries of one device of AMD's. Read first: vendor/device_libraries.hpp. Read next: vendor/blas.hpp,
// miopen.hpp.
#pragma once

#include "amdgpu/miopen.hpp"
#include "vendor/blas.hpp"
#include "vendor/device_libraries.hpp"

namespace rosin::amdgpu {

using DeviceLibraries = vendor::DeviceLibraries<vendor::Blas, Dnn>;

}  // namespace rosin::amdgpu
