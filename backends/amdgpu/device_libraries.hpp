// The libraries of one device of AMD's. Read first: vendor/device_libraries.hpp. Read next: vendor/blas.hpp.
#pragma once

#include "vendor/blas.hpp"
#include "vendor/device_libraries.hpp"

namespace rosin::amdgpu {

using DeviceLibraries = vendor::DeviceLibraries<vendor::Blas>;

}  // namespace rosin::amdgpu
