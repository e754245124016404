// Which library of AMD's answers which vendor call. Read first: vendor/calls.hpp. Read next: calls.cpp,
// miopen_call.cpp.
#pragma once

#include "vendor/calls.hpp"

namespace rosin::amdgpu {

extern const vendor::CallMaker dnn_calls;

}  // namespace rosin::amdgpu
