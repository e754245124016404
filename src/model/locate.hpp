// Where in a model an error arose: layers say that it was they, and whoever knows the whole says at which path they
// are.
#pragma once

#include <rosin/error.hpp>
#include <rosin/walk.hpp>

namespace rosin {

/// Called where an error passes a layer, a container of layers, or who was given a whole model. The first one is the
/// layer in which it arose; each one after it that has that layer as a part puts the part's path before the text.
void locate(Error& error, ModelView whole);

/// What the call gives; an error that passes is located.
template <class Whole, class Call> auto located(const Whole& whole, Call&& call) {
  try {
    return call();
  } catch (Error& error) {
    locate(error, whole);
    throw;
  }
}

}  // namespace rosin
