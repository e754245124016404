// destructure: all trained elements of a model as one vector, and the model of such a vector. For methods that know
// vectors only (line searches, differential equations, Hamiltonian Monte Carlo). Upstream: Optimisers.destructure.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include <rosin/copy.hpp>
#include <rosin/model.hpp>
#include <rosin/walk.hpp>

namespace rosin {

// --- For compiled code.

namespace detail {

/// The trained arrays (see trainables), one after the other in the order of the walk, as a vector of their common float
/// type on their device; an empty Float32 vector where there are none.
ROSIN_API Array trained_elements(ModelView model);
/// Puts the elements of such a vector into the model's arrays, which keep their shapes, types and ties. Error (shape):
/// a vector of another length.
ROSIN_API void set_trained_elements(ModelEdit model, const Array& flat);

}  // namespace detail

// ---

/// What destructure() gives beside the vector: the way back.
template <Walkable M> class Restructure {
 public:
  explicit Restructure(const M& model) : model_(copy_of(model)), length_(parameter_count(model)) {}

  /// The model with the elements of a vector (size()). Differentiable. Error (shape): another length.
  M operator()(const Array& flat) const { return (*this)(model_, flat); }
  /// The same with all else taken from `model`.
  M operator()(const M& model, const Array& flat) const {
    M copy = copy_of(model);
    detail::set_trained_elements(copy, flat);
    return copy;
  }
  int64_t size() const noexcept { return length_; }
  std::string rosin_show() const {
    return "Restructure(" + std::string(reflect::type_name<M>) + ", ..., " + std::to_string(length_) + ")";
  }

 private:
  M model_;
  int64_t length_;
};
template <Walkable M> std::string to_string(const Restructure<M>& restructure) { return restructure.rosin_show(); }

/// All trained elements as one vector, and the way back: `auto [flat, re] = destructure(model); re(2 * flat)`. Tied
/// arrays are in the vector once. Both are differentiable.
template <Walkable M> std::pair<Array, Restructure<M>> destructure(const M& model) {
  return {detail::trained_elements(model), Restructure<M>(model)};
}

}  // namespace rosin
