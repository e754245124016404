// Sizes of what a model gives, without computing it: outputsize, and layers that find their own sizes: autosize.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/chain.hpp>
#include <rosin/export.hpp>
#include <rosin/layer.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

namespace detail {

/// An array of that shape which takes no memory unless it is computed with; a batch of 1 is added with `padbatch`.
ROSIN_API Array size_only(const Shape& shape, bool padbatch, DType type);

}  // namespace detail

struct OutputSizeOptions {
  bool padbatch = false;  // `shape` has no batch dim: it becomes one observation
  DType type = Float32;   // of the input; Int32 for indices
};

/// The shape of model(x) for an x of this shape. The model is called as it infers and nothing is computed, unless it
/// looks at values. Errors are those of the layers. Source: Flux.outputsize.
template <class M> Shape outputsize(const M& model, const Shape& shape, const OutputSizeOptions& options = {}) {
  return model(detail::size_only(shape, options.padbatch, options.type)).shape();
}

/// A layer of `autosize`, or a function of the number of channels (or features) that come in, which makes one.
class SizedLayer {
 public:
  template <class F>
    requires(!std::same_as<F, SizedLayer> && std::is_invocable_v<const F&, int64_t> && !LayerLike<F>)
  SizedLayer(F make) : make_([make](int64_t channels) { return Layer(make(channels)); }) {}
  template <class L>
    requires(!std::same_as<L, SizedLayer> && std::convertible_to<L, Layer>)
  SizedLayer(L layer) : make_([kept = Layer(std::move(layer))](int64_t) { return kept; }) {}

  Layer operator()(int64_t channels) const { return make_(channels); }

 private:
  SmallFunction<Layer(int64_t)> make_;
};

/// A chain whose layers are told how many channels come in, for inputs of this shape, its batch included:
///
///   autosize({28, 28, 1, 32}, {[](int64_t in) { return Conv({3, 3}, in, 8, relu); }, flatten,
///                              [](int64_t in) { return Dense(in, 10); }});
///
/// Nothing is computed but the layers' first values. Source: Flux.@autosize.
ROSIN_API Chain autosize(const Shape& shape, std::span<const SizedLayer> layers);
inline Chain autosize(const Shape& shape, std::initializer_list<SizedLayer> layers) {
  return autosize(shape, std::span<const SizedLayer>(layers.begin(), layers.size()));
}

}  // namespace rosin
