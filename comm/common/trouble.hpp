// How the functions of a transport fail: what is thrown inside becomes the status and the error text of the call.
// Shared by the transports. Read first: rosin/comm.h.
#pragma once

#include <string>

#include <rosin/comm.h>

namespace rosin::transport {

/// Thrown inside a transport; guarded() makes it the status and the error text of the call.
struct Trouble {
  rosin_comm_status status;
  std::string text;
};

/// What the calling thread's last failure said.
const char* error_text();
/// Notes the exception that is being handled.
rosin_comm_status caught() noexcept;

/// Runs a function of the table: nothing thrown leaves it.
template <class F> rosin_comm_status guarded(F&& call) noexcept {
  try {
    call();
    return ROSIN_COMM_OK;
  } catch (...) {
    return caught();
  }
}

}  // namespace rosin::transport
