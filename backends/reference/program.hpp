// Programs as bytes, and modules made from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rosin/backend.h>

#include "interpret.hpp"

struct rosin_kernel {
  rosin_device* device = nullptr;
  rosin::reference::Kernel code;
};

struct rosin_module {
  std::vector<rosin_kernel> kernels;  // never grows: kernel() gives addresses away
};

namespace rosin::reference {

/// Throws Failure: ROSIN_COMPILE_FAILED where a code breaks backend.h or needs what the target has not.
std::string program_bytes(const rosin_program& program, std::string_view target);

/// The kernels in bytes; throws Failure with ROSIN_INVALID for bytes that program_bytes() did not make for the target.
std::vector<rosin_kernel> kernels_in(std::string_view bytes, rosin_device& device);

}  // namespace rosin::reference
