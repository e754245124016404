// ROSIN_TUNE=1: which of a library's ways computes a call fastest is measured when the call is first prepared, and
// kept: in the process, and on disk for the next. Read first: include/rosin/backend.h (call_tune, call_choice). Read
// next: library_call.hpp.
#pragma once

#include "run/open_device.hpp"

namespace rosin {

/// Prepares the call, with the way that is known to be the fastest where that is asked for. The status of call_prepare,
/// or of what is measured.
rosin_status prepare_call(OpenDevice& device, rosin_call_description question, rosin_call*& call, uint64_t& workspace);

}  // namespace rosin
