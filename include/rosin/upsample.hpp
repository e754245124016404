// Layers that enlarge images (spatial..., channels, batch): Upsample, PixelShuffle, and its way back, PixelUnshuffle.
// No parameters. Read first: pool_layers.hpp.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>
#include <rosin/fields.hpp>
#include <rosin/pool.hpp>

namespace rosin {

/// How values between elements are found; linear, bilinear and trilinear are for one, two and three spatial dims, and
/// map corners to corners.
enum class UpsampleMode : uint8_t { nearest, linear, bilinear, trilinear };

/// Either the factor or the size to reach, of all spatial dims or of each.
struct UpsampleOptions {
  Extents scale = {};
  Extents size = {};
};

/// Source: Flux.Upsample.
struct ROSIN_API Upsample {
  UpsampleMode mode = UpsampleMode::nearest;
  Extents scale;
  Extents size;
  static constexpr fields<> rosin_fields{};

  Upsample(const Extents& factor, UpsampleMode how = UpsampleMode::nearest) : Upsample(how, {.scale = factor}) {}
  /// Error (argument): both or none of scale and size.
  Upsample(UpsampleMode how, const UpsampleOptions& options);

  /// x is (spatial..., channels, batch). Error (shape): the mode is for another number of spatial dims.
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// (spatial..., r^d * channels, batch) -> (r * spatial..., channels, batch), d being the number of spatial dims.
/// Source: Flux.PixelShuffle; Shi et al. (2016).
struct ROSIN_API PixelShuffle {
  int64_t r = 1;
  static constexpr fields<> rosin_fields{};

  explicit PixelShuffle(int64_t factor) : r(factor) {}
  /// Error (shape): the channels are no multiple of r^d.
  Array operator()(const Array& x) const;
  std::string rosin_show() const { return "PixelShuffle(" + std::to_string(r) + ")"; }
};

/// The opposite: r x r elements of a channel become as many channels. (spatial..., channels, batch) -> (spatial / r...,
/// channels * r^d, batch). Error (shape): r does not divide a size. Source: torch.nn.PixelUnshuffle.
struct ROSIN_API PixelUnshuffle {
  int64_t r = 1;
  static constexpr fields<> rosin_fields{};

  explicit PixelUnshuffle(int64_t factor) : r(factor) {}
  Array operator()(const Array& x) const;
  std::string rosin_show() const { return "PixelUnshuffle(" + std::to_string(r) + ")"; }
};

/// Both as functions. Source: NNlib.pixel_shuffle.
inline Array pixel_shuffle(const Array& x, int64_t r) { return PixelShuffle(r)(x); }
inline Array pixel_unshuffle(const Array& x, int64_t r) { return PixelUnshuffle(r)(x); }

}  // namespace rosin
