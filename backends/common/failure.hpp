// How the functions of a plug-in fail: what is thrown inside becomes the status and the error text of the call. Shared
// by the back ends that drive real devices. Read first: rosin/backend.h.
#pragma once

#include <string>

#include <rosin/backend.h>

namespace rosin::plugin {

/// Thrown inside a plug-in; guarded() makes it the status and the error text of the call.
struct Failure {
  rosin_status status;
  std::string text;
};

void set_error(std::string text) noexcept;
/// What the calling thread's last failure said.
const char* error_text();
/// Notes the exception that is being handled.
rosin_status caught() noexcept;

/// Runs a function of the table: nothing thrown leaves it.
template <class F> rosin_status guarded(F&& call) noexcept {
  try {
    call();
    return ROSIN_OK;
  } catch (...) {
    return caught();
  }
}

}  // namespace rosin::plugin
