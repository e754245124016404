// Pooling layers on images (spatial..., channels, batch), and Flatten. No parameters.
// Read first: pool.hpp (what is computed), conv_layers.hpp (padding).
#pragma once

#include <string>

#include <rosin/array.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/fields.hpp>
#include <rosin/pool.hpp>

namespace rosin {

/// `stride` empty: that of the window. `dilation` and `ceil` as in WindowOptions.
struct PoolOptions {
  Pad pad = 0;
  Extents stride = {};
  Extents dilation = {};
  bool ceil = false;
  bool count_pad = true;  // of MeanPool: padding counts in the divisor
};

/// Largest element of each window. Source: Flux.MaxPool.
struct ROSIN_API MaxPool {
  Extents k;
  PoolOptions options;
  static constexpr fields<> rosin_fields{};

  MaxPool(const Extents& window, const PoolOptions& settings = {}) : k(window), options(settings) {}
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// Mean of each window; padding is zeros. Source: Flux.MeanPool.
struct ROSIN_API MeanPool {
  Extents k;
  PoolOptions options;
  static constexpr fields<> rosin_fields{};

  MeanPool(const Extents& window, const PoolOptions& settings = {}) : k(window), options(settings) {}
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// Pooling to the stated spatial sizes. Source: Flux.AdaptiveMaxPool, Flux.AdaptiveMeanPool.
struct ROSIN_API AdaptiveMaxPool {
  Extents out;
  static constexpr fields<> rosin_fields{};

  AdaptiveMaxPool(const Extents& sizes) : out(sizes) {}
  Array operator()(const Array& x) const { return adaptive_maxpool(x, out); }
  std::string rosin_show() const;
};
struct ROSIN_API AdaptiveMeanPool {
  Extents out;
  static constexpr fields<> rosin_fields{};

  AdaptiveMeanPool(const Extents& sizes) : out(sizes) {}
  Array operator()(const Array& x) const { return adaptive_meanpool(x, out); }
  std::string rosin_show() const;
};

/// Over all spatial dims, which keep size 1. Source: Flux.GlobalMaxPool, Flux.GlobalMeanPool.
struct GlobalMaxPool {
  Array operator()(const Array& x) const { return global_maxpool(x); }
  std::string rosin_show() const { return "GlobalMaxPool()"; }
};
struct GlobalMeanPool {
  Array operator()(const Array& x) const { return global_meanpool(x); }
  std::string rosin_show() const { return "GlobalMeanPool()"; }
};

/// (a, b, ..., batch) -> (a*b*..., batch). The function `flatten` is a layer too.
struct ROSIN_API Flatten {
  Array operator()(const Array& x) const;
  std::string rosin_show() const { return "Flatten()"; }
};

}  // namespace rosin
