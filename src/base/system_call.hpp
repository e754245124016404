// What all callers of the system share: calls that a signal interrupts are made again, and errors have words.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace rosin {

/// The result of a call that says -1 and EINTR when a signal came in between; it is made until it says something else.
template <class Call> auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// What an errno means.
inline std::string system_text(int code) { return std::generic_category().message(code); }

}  // namespace rosin
