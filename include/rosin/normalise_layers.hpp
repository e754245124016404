// Layers that normalise: BatchNorm, LayerNorm, RMSNorm, InstanceNorm, GroupNorm. x is (..., channels, batch).
// Read first: buffer.hpp (running statistics), visitor.hpp (LayerMode).
#pragma once

#include <cstdint>
#include <string>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/buffer.hpp>
#include <rosin/fields.hpp>
#include <rosin/init.hpp>
#include <rosin/visitor.hpp>

namespace rosin {

/// For the library: what a layer's statistics are taken over beside its own batch, the sum of x over processes that
/// each have a part of it, with a gradient. See distributed::SyncBatchNorm.
struct SumOverParts {
  Array (*sum)(void* parts, const Array& x) = nullptr;
  void* parts = nullptr;
};

struct BatchNormOptions {
  Init initbeta = zeros32;
  Init initgamma = ones32;
  bool affine = true;
  bool track_stats = true;
  LayerMode active = LayerMode::automatic;
  double eps = 1e-5;
  double momentum = 0.1;
};

/// act(scale * (x - mean) / sqrt(variance + eps) + bias) with the statistics of each channel: in training those of the
/// batch (biased variance), else the running ones. Running statistics move by `momentum` towards those of the batch
/// (corrected variance) in training inside a gradient call. Halves are computed in Float32. An empty x has no
/// statistics and moves none. Source: Flux.BatchNorm; Ioffe and Szegedy (2015).
struct ROSIN_API BatchNorm {
  Array scale;  // (channels), or nothing
  Array bias;   // (channels), or nothing
  Activation act;
  Buffer mean;      // (channels), or nothing
  Buffer variance;  // (channels), or nothing
  LayerMode mode = LayerMode::automatic;
  int64_t channels = 0;
  double eps = 1e-5;
  double momentum = 0.1;
  SumOverParts over = {};  // null: statistics are of this batch alone
  static constexpr auto rosin_fields =
      fields<&BatchNorm::scale, &BatchNorm::bias, &BatchNorm::act, &BatchNorm::mean, &BatchNorm::variance,
             &BatchNorm::mode, &BatchNorm::eps, &BatchNorm::momentum>{};

  BatchNorm() = default;
  BatchNorm(int64_t channel_count, Activation activation = {}, const BatchNormOptions& options = {});
  BatchNorm(int64_t channel_count, const BatchNormOptions& options) : BatchNorm(channel_count, {}, options) {}

  /// x is (..., channels, batch). Errors: shape; argument (one value per channel in training).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct LayerNormOptions {
  bool affine = true;
  double eps = 1e-5;
};

/// act(scale * normalised + bias), normalised over the first dims. Source: Flux.LayerNorm; Ba, Kiros, Hinton (2016).
struct ROSIN_API LayerNorm {
  Array scale;  // (size...), or nothing
  Array bias;   // (size...), or nothing
  Activation act;
  Shape size;
  double eps = 1e-5;
  static constexpr auto rosin_fields = fields<&LayerNorm::scale, &LayerNorm::bias, &LayerNorm::act, &LayerNorm::eps>{};

  LayerNorm() = default;
  LayerNorm(int64_t features, Activation activation = {}, const LayerNormOptions& options = {})
      : LayerNorm(Shape{features}, activation, options) {}
  LayerNorm(int64_t features, const LayerNormOptions& options) : LayerNorm(Shape{features}, {}, options) {}
  LayerNorm(const Shape& sizes, Activation activation = {}, const LayerNormOptions& options = {});
  LayerNorm(const Shape& sizes, const LayerNormOptions& options) : LayerNorm(sizes, {}, options) {}

  /// x is (size..., batch...). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct RMSNormOptions {
  bool affine = true;
  double eps = 1e-6;
};
/// scale * x / sqrt(mean(x^2) + eps) over the first dims, in Float32 at least. Source: torch.nn.RMSNorm (whose eps is
/// that of the type unless stated); Zhang, Sennrich: Root Mean Square Layer Normalization (2019).
struct ROSIN_API RMSNorm {
  Array scale;  // (size...), or nothing
  Shape size;
  double eps = 1e-6;
  static constexpr auto rosin_fields = fields<&RMSNorm::scale, &RMSNorm::eps>{};

  RMSNorm() = default;
  explicit RMSNorm(int64_t features, const RMSNormOptions& options = {}) : RMSNorm(Shape{features}, options) {}
  explicit RMSNorm(const Shape& sizes, const RMSNormOptions& options = {});

  /// x is (size..., batch...). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct InstanceNormOptions {
  Init initbeta = zeros32;
  Init initgamma = ones32;
  bool affine = false;
  bool track_stats = false;
  LayerMode active = LayerMode::automatic;
  double eps = 1e-5;
  double momentum = 0.1;
};

/// As BatchNorm with the statistics of each channel of each sample; the running ones are their means over the batch.
/// Source: Flux.InstanceNorm.
struct ROSIN_API InstanceNorm {
  Array scale;  // (channels), or nothing
  Array bias;   // (channels), or nothing
  Activation act;
  Buffer mean;      // (channels), or nothing
  Buffer variance;  // (channels), or nothing
  LayerMode mode = LayerMode::automatic;
  int64_t channels = 0;
  double eps = 1e-5;
  double momentum = 0.1;
  static constexpr auto rosin_fields =
      fields<&InstanceNorm::scale, &InstanceNorm::bias, &InstanceNorm::act, &InstanceNorm::mean,
             &InstanceNorm::variance, &InstanceNorm::mode, &InstanceNorm::eps, &InstanceNorm::momentum>{};

  InstanceNorm() = default;
  InstanceNorm(int64_t channel_count, Activation activation = {}, const InstanceNormOptions& options = {});
  InstanceNorm(int64_t channel_count, const InstanceNormOptions& options) : InstanceNorm(channel_count, {}, options) {}

  /// x is (spatial..., channels, batch), at least one spatial dim. Errors: shape; argument (one value per channel where
  /// statistics are tracked).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct GroupNormOptions {
  Init initbeta = zeros32;
  Init initgamma = ones32;
  bool affine = true;
  double eps = 1e-5;
};

/// Normalises groups of channels of each sample. Source: Flux.GroupNorm; Wu and He (2018).
struct ROSIN_API GroupNorm {
  Array scale;  // (channels), or nothing
  Array bias;   // (channels), or nothing
  Activation act;
  int64_t channels = 0;
  int64_t groups = 1;
  double eps = 1e-5;
  static constexpr auto rosin_fields = fields<&GroupNorm::scale, &GroupNorm::bias, &GroupNorm::act, &GroupNorm::eps>{};

  GroupNorm() = default;
  /// Error (argument): the groups do not divide the channels.
  GroupNorm(int64_t channel_count, int64_t group_count, Activation activation = {},
            const GroupNormOptions& options = {});
  GroupNorm(int64_t channel_count, int64_t group_count, const GroupNormOptions& options)
      : GroupNorm(channel_count, group_count, {}, options) {}

  /// x is (spatial..., channels, batch). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

}  // namespace rosin
