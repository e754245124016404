// From the status of a plug-in's function to an Error.
#pragma once

#include <string>
#include <string_view>

#include <rosin/backend.h>

namespace rosin {

/// `what` failed on `device` ("CUDA:0"): Error (memory) or (backend), with what the plug-in says.
[[noreturn]] void throw_status(const rosin_backend& functions, rosin_status status, std::string_view what,
                               std::string_view device);

inline void require_ok(const rosin_backend& functions, rosin_status status, std::string_view what,
                       std::string_view device) {
  if (status != ROSIN_OK) throw_status(functions, status, what, device);
}

}  // namespace rosin
