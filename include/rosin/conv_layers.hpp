// Convolution layers on images (spatial..., channels, batch) with one to three spatial dims, WHCN order.
// Read first: conv.hpp (what is computed), dense.hpp. Read next: pool_layers.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/conv.hpp>
#include <rosin/fields.hpp>
#include <rosin/init.hpp>
#include <rosin/movement.hpp>

namespace rosin {

/// Padding such that the output has the size of the input divided by the stride, rounded up (ConvTranspose: times the
/// stride). An odd element goes before.
struct SamePad {};

/// Padding of a layer: a number, one for each dim, low and high for each dim, or SamePad().
class Pad {
 public:
  Pad(SamePad) noexcept : same_(true) {}
  Pad(const Extents& extents) : extents_(extents) {}
  template <std::integral T> Pad(T all) : extents_(all) {}
  Pad(std::initializer_list<int64_t> values) : extents_(values) {}

  bool is_same() const noexcept { return same_; }
  const Extents& extents() const noexcept { return extents_; }

 private:
  Extents extents_;
  bool same_ = false;
};

struct ConvLayerOptions {
  Extents stride = 1;
  Pad pad = 0;
  Extents dilation = 1;
  int64_t groups = 1;
  Array bias = true;  // true, false, or the array
  Init init = glorot_uniform;
  std::optional<PadMode> padding_mode = {};  // what stands in the padding; zeros where it is not stated
};

/// act(conv(x, weight) + bias): true convolution, the kernel is flipped. With a padding mode x is padded by `pad` of
/// movement.hpp, whose errors hold. Sources: Flux.Conv; torch.nn.Conv2d (padding_mode).
struct ROSIN_API Conv {
  Array weight;  // (kernel..., in / groups, out)
  Array bias;    // (out), or nothing
  Activation act;
  ConvOptions window;  // stride, pad, dilation, groups
  std::optional<PadMode> padding_mode = {};
  static constexpr auto rosin_fields = fields<&Conv::weight, &Conv::bias, &Conv::act>{};

  Conv() = default;
  /// Error (argument): groups do not divide the channels.
  Conv(const Extents& filter, int64_t in, int64_t out, Activation activation = {},
       const ConvLayerOptions& options = {});
  Conv(const Extents& filter, int64_t in, int64_t out, const ConvLayerOptions& options)
      : Conv(filter, in, out, {}, options) {}
  Conv(const Array& w, const Array& b, Activation activation = {}, const ConvLayerOptions& options = {});

  /// x is (spatial..., in, batch) -> (spatial'..., out, batch). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// As Conv, but the kernel is not flipped. Source: Flux.CrossCor.
struct ROSIN_API CrossCor {
  Array weight;  // (kernel..., in / groups, out)
  Array bias;    // (out), or nothing
  Activation act;
  ConvOptions window;
  std::optional<PadMode> padding_mode = {};
  static constexpr auto rosin_fields = fields<&CrossCor::weight, &CrossCor::bias, &CrossCor::act>{};

  CrossCor() = default;
  CrossCor(const Extents& filter, int64_t in, int64_t out, Activation activation = {},
           const ConvLayerOptions& options = {});
  CrossCor(const Extents& filter, int64_t in, int64_t out, const ConvLayerOptions& options)
      : CrossCor(filter, in, out, {}, options) {}
  CrossCor(const Array& w, const Array& b, Activation activation = {}, const ConvLayerOptions& options = {});

  /// x is (spatial..., in, batch) -> (spatial'..., out, batch). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct ConvTransposeOptions {
  Extents stride = 1;
  Pad pad = 0;
  Extents outpad = 0;
  Extents dilation = 1;
  int64_t groups = 1;
  Array bias = true;
  Init init = glorot_uniform;
};

/// act(conv_transpose(x, weight) + bias): the gradient of Conv by its input. Source: Flux.ConvTranspose.
struct ROSIN_API ConvTranspose {
  Array weight;  // (kernel..., out / groups, in)
  Array bias;    // (out), or nothing
  Activation act;
  ConvOptions window;
  Extents outpad;
  static constexpr auto rosin_fields = fields<&ConvTranspose::weight, &ConvTranspose::bias, &ConvTranspose::act>{};

  ConvTranspose() = default;
  ConvTranspose(const Extents& filter, int64_t in, int64_t out, Activation activation = {},
                const ConvTransposeOptions& options = {});
  ConvTranspose(const Extents& filter, int64_t in, int64_t out, const ConvTransposeOptions& options)
      : ConvTranspose(filter, in, out, {}, options) {}
  ConvTranspose(const Array& w, const Array& b, Activation activation = {}, const ConvTransposeOptions& options = {});

  /// x is (spatial..., in, batch) -> (spatial'..., out, batch). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// As ConvTranspose, but the kernel is not flipped: the gradient of CrossCor by its input. Source: PyTorch's
/// ConvTranspose.
struct ROSIN_API CrossCorTranspose {
  Array weight;  // (kernel..., out / groups, in)
  Array bias;    // (out), or nothing
  Activation act;
  ConvOptions window;
  Extents outpad;
  static constexpr auto rosin_fields =
      fields<&CrossCorTranspose::weight, &CrossCorTranspose::bias, &CrossCorTranspose::act>{};

  CrossCorTranspose() = default;
  CrossCorTranspose(const Extents& filter, int64_t in, int64_t out, Activation activation = {},
                    const ConvTransposeOptions& options = {});
  CrossCorTranspose(const Extents& filter, int64_t in, int64_t out, const ConvTransposeOptions& options)
      : CrossCorTranspose(filter, in, out, {}, options) {}
  CrossCorTranspose(const Array& w, const Array& b, Activation activation = {},
                    const ConvTransposeOptions& options = {});

  /// x is (spatial..., in, batch) -> (spatial'..., out, batch). Error (shape).
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// A Conv in which every channel is a group of its own. Source: Flux.DepthwiseConv.
ROSIN_API Conv DepthwiseConv(const Extents& filter, int64_t in, int64_t out, Activation activation = {},
                             const ConvLayerOptions& options = {});

}  // namespace rosin
