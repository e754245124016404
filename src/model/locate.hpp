// Where in a model an error arose: layers say that it was they, and whoever knows the whole says at which path they
// are.
#pragma once

#include <rosin/model.hpp>

namespace rosin {

/// What the call gives; an error that passes is located.
template <class Whole, class Call> auto located(const Whole& whole, Call&& call) {
  try {
    return call();
  } catch (Error& error) {
    detail::locate(error, whole);
    throw;
  }
}

}  // namespace rosin
