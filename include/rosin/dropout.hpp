// Dropout and AlphaDropout: noise in training.
// Read first: visitor.hpp (LayerMode), random.hpp (Rng).
#pragma once

#include <span>
#include <string>

#include <rosin/array.hpp>
#include <rosin/fields.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/visitor.hpp>

namespace rosin {

/// `dims`: those along which elements are dropped one by one, others together; empty: all. `rng` null: the thread's
/// generator; else it must outlive the layer and all its copies.
struct DropoutOptions {
  Dims dims = Dims(std::span<const int>());
  LayerMode active = LayerMode::automatic;
  Rng* rng = nullptr;
};

/// In training every element is 0 with probability p, and times 1 / (1 - p) otherwise. Source: Flux.Dropout.
struct ROSIN_API Dropout {
  double p = 0.5;
  Dims dims = Dims(std::span<const int>());
  LayerMode mode = LayerMode::automatic;
  Rng* rng = nullptr;
  static constexpr auto rosin_fields = fields<&Dropout::p, &Dropout::mode>{};

  /// Error (argument): probability is not in [0, 1].
  Dropout(double probability, const DropoutOptions& options = {});
  /// x has any shape. Error (shape): no such dim.
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct AlphaDropoutOptions {
  LayerMode active = LayerMode::automatic;
  Rng* rng = nullptr;
};

/// Dropout that keeps mean and variance of inputs that selu made. Source: Flux.AlphaDropout; Klambauer et al. (2017).
struct ROSIN_API AlphaDropout {
  double p = 0.5;
  LayerMode mode = LayerMode::automatic;
  Rng* rng = nullptr;
  static constexpr auto rosin_fields = fields<&AlphaDropout::p, &AlphaDropout::mode>{};

  AlphaDropout(double probability, const AlphaDropoutOptions& options = {});
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// Dropout as a function, always active. `dims` as in DropoutOptions. Source: NNlib.dropout.
ROSIN_API Array dropout(const Array& x, double p, const Dims& dims = Dims(std::span<const int>()));
ROSIN_API Array dropout(Rng& rng, const Array& x, double p, const Dims& dims = Dims(std::span<const int>()));

}  // namespace rosin
