// Layers around a layer whose weight is made anew in each call: WeightNorm, SpectralNorm. They take layers with a
// member `weight`, or name another one: `WeightNorm<Conv, &Conv::weight>`. Read first: dense.hpp, buffer.hpp.
#pragma once

#include <cstdint>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/buffer.hpp>
#include <rosin/export.hpp>
#include <rosin/fields.hpp>
#include <rosin/layer.hpp>
#include <rosin/visitor.hpp>

namespace rosin {

namespace detail {

/// The dim of a weight's outputs: 0 of matrices (out, in), the last one of kernels (kernel..., in, out). Error
/// (argument): `stated`, where it is not `automatic_dim`, is none of its dims.
ROSIN_API int checked_output_dim(const char* layer, const Array& weight, int stated);
/// The lengths of a weight's slices along `dim`, with size 1 in all other dims; 1e-12 where one is 0.
ROSIN_API Array slice_lengths(const Array& weight, int dim);
/// Unit vectors (rows, 1) and (columns, 1) of the weight's matrix that multiply with it to its largest singular value.
struct Directions {
  Array u, v;
};
/// What 15 steps of the power iteration make of a random u.
ROSIN_API Directions first_directions(const Array& weight, int dim, double eps);
/// The same, `steps` steps on; not differentiated.
ROSIN_API Directions next_directions(const Array& weight, const Directions& now, int dim, int64_t steps, double eps);
/// The weight divided by the singular value.
ROSIN_API Array with_unit_norm(const Array& weight, const Directions& directions, int dim);

}  // namespace detail

/// As `dim`: the dim of the outputs, which is 0 for matrices (out, in) and the last one for kernels.
inline constexpr int automatic_dim = 127;

/// A layer with weight = g * v / |v|: length and direction of the slices along `dim` are trained apart. The layer's own
/// weight is v. It begins with the lengths that the weight has, so that the layer computes what it computed before.
/// Error (argument): there is no such dim. Sources: Salimans, Kingma (2016); Flux.WeightNorm; torch's weight_norm.
template <class L, Array L::*which = &L::weight> struct WeightNorm {
  L layer;
  Array g;  // (1, ..., n, ..., 1)
  int dim = 0;
  static constexpr auto rosin_fields = fields<&WeightNorm::layer, &WeightNorm::g>{};

  WeightNorm() = default;
  explicit WeightNorm(L around, int along = automatic_dim) : layer(std::move(around)) {
    dim = detail::checked_output_dim("WeightNorm", layer.*which, along);
    g = detail::slice_lengths(layer.*which, dim);
    eval(g);
  }

  /// The weight that the layer computes with.
  Array weight() const { return layer.*which * (g / detail::slice_lengths(layer.*which, dim)); }
  /// What the layer gives.
  Array operator()(const Array& x) const { return remove_weight_norm(*this)(x); }
};
template <class L> WeightNorm(L) -> WeightNorm<L>;
template <class L> WeightNorm(L, int) -> WeightNorm<L>;

/// The layer alone, with the weight that it computed with.
template <class L, Array L::*which> L remove_weight_norm(const WeightNorm<L, which>& norm) {
  L layer = norm.layer;
  layer.*which = norm.weight();
  return layer;
}

struct SpectralNormOptions {
  int64_t iterations = 1;   // of the power iteration in each training call
  double eps = 1e-12;       // least length of its vectors
  int dim = automatic_dim;  // whose slices are the rows of the matrix
};

/// A layer whose weight is divided by its largest singular value, as a matrix of its slices along `dim`. Running
/// vectors u and v find that value: they move in training inside a gradient call, and no gradient flows through them.
/// Sources:
/// Miyato et al.: Spectral Normalization for GANs (2018); torch's spectral_norm.
template <class L, Array L::*which = &L::weight> struct SpectralNorm {
  L layer;
  Buffer u, v;
  LayerMode mode = LayerMode::automatic;
  int64_t iterations = 1;
  double eps = 1e-12;
  int dim = 0;
  static constexpr auto rosin_fields =
      fields<&SpectralNorm::layer, &SpectralNorm::u, &SpectralNorm::v, &SpectralNorm::mode>{};

  SpectralNorm() = default;
  /// Error (argument): there is no such dim.
  explicit SpectralNorm(L around, const SpectralNormOptions& options = {})
      : layer(std::move(around)), iterations(options.iterations), eps(options.eps) {
    dim = detail::checked_output_dim("SpectralNorm", layer.*which, options.dim);
    const detail::Directions first = detail::first_directions(layer.*which, dim, eps);
    u = first.u;
    v = first.v;
  }

  /// The weight that the layer computes with.
  Array weight() const {
    detail::Directions now{u.value(), v.value()};
    if (is_training(mode)) {
      now = detail::next_directions(layer.*which, now, dim, iterations, eps);
      assign(u, now.u);
      assign(v, now.v);
    }
    return detail::with_unit_norm(layer.*which, now, dim);
  }
  /// What the layer gives.
  Array operator()(const Array& x) const { return remove_spectral_norm(*this)(x); }
};
template <class L> SpectralNorm(L) -> SpectralNorm<L>;
template <class L> SpectralNorm(L, SpectralNormOptions) -> SpectralNorm<L>;

/// The layer alone, with the weight that it computed with.
template <class L, Array L::*which> L remove_spectral_norm(const SpectralNorm<L, which>& norm) {
  L layer = norm.layer;
  layer.*which = norm.weight();
  return layer;
}

}  // namespace rosin
