// Which library of NVIDIA's answers which vendor call. Read first: vendor/calls.hpp. Read next: calls.cpp,
// cudnn_call.cpp, recurrent_call.cpp.
#pragma once

#include "vendor/calls.hpp"

namespace rosin::cuda {

using namespace vendor;

extern const CallMaker dnn_calls;
extern const CallMaker attention_calls;
extern const CallMaker recurrent_calls;

rosin_status call_reserve(rosin_device* device, const rosin_call_description* description, uint64_t* bytes);

}  // namespace rosin::cuda
