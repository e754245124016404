// What tests ask of errors.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <system_error>

#include <rosin/error.hpp>

namespace rosin {

/// What the system says of a file that is not there. (Windows counts that as 2 too.)
inline std::string no_such_file() { return std::system_category().message(ENOENT); }

/// The text of the Error that f throws, or "no error".
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The same where an Error of this kind must be thrown.
template <class F> std::string error_of(F&& f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "no error";
}

}  // namespace rosin
