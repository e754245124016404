// Where in a model an error arose: layers say that it was they, and whoever knows the whole says at which path they
// are. Read first: graph/recording_site.hpp (the same for errors that come later).
#pragma once

#include <rosin/model.hpp>

#include "graph/recording_site.hpp"

namespace rosin {

/// The call of a layer, of a container of layers, or with a whole model.
class ModelCall final : public CallUnderWay {
 public:
  explicit ModelCall(ModelView whole) noexcept : whole_(whole) {}

  void locate(Error& error) const override { detail::locate(error, whole_); }
  void follow(Error::Place& layer, uint64_t& path) const override { follow(whole_, layer, path); }
  static void follow(ModelView whole, Error::Place& layer, uint64_t& path);

 private:
  ModelView whole_;
};

/// What the call gives; an error that passes is located.
template <class Whole, class Call> auto located(const Whole& whole, Call&& call) {
  const ModelCall here(whole);
  try {
    return call();
  } catch (Error& error) {
    detail::locate(error, whole);
    throw;
  }
}

}  // namespace rosin
