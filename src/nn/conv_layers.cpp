// Convolution layers: see rosin/conv_layers.hpp.
#include <rosin/conv_layers.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <rosin/elementwise.hpp>

#include "base/sizes.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "nn/padding.hpp"
#include "ops/autocast_casts.hpp"

namespace rosin {
namespace {

int64_t at(const Extents& extents, int dim) {
  const auto list = extents.list();
  return list.empty() ? 1 : list[list.size() == 1 ? 0 : static_cast<size_t>(dim)];
}

/// One number for each spatial dim.
Extents each_dim(const Extents& extents, int spatial) {
  int64_t values[3] = {};
  for (int d = 0; d < spatial; ++d) values[d] = at(extents, d);
  return Extents(std::span<const int64_t>(values, static_cast<size_t>(spatial)));
}

int spatial_dims_of(std::string_view layer, const Array& weight) {
  if (!weight.is_nothing() && weight.rank() >= 3 && weight.rank() <= 5) return weight.rank() - 2;
  throw Error(ErrorKind::shape, std::string(layer) +
                                    ": the weight must be (kernel..., channels, channels) with one to " +
                                    "three kernel dims; got " +
                                    (weight.is_nothing() ? "nothing" : to_string(weight.shape())) + "; reshape it");
}

/// Checks and completes what a layer was given; `transposed` for ConvTranspose and CrossCorTranspose.
template <class Options>
ConvOptions window_for(std::string_view layer, const Array& weight, const Options& options, bool transposed) {
  const int spatial = spatial_dims_of(layer, weight);
  const auto fits = [&](const Extents& extents) {
    const size_t count = extents.list().size();
    return count <= 1 || count == static_cast<size_t>(spatial);
  };
  if (!fits(options.stride) || !fits(options.dilation)) {
    throw Error(ErrorKind::argument, std::string(layer) +
                                         ": stride and dilation take one number or one per spatial dim; got " +
                                         "another count for " + std::to_string(spatial) + " dims; state one number");
  }
  ConvOptions window{.stride = each_dim(options.stride, spatial),
                     .pad = options.pad.extents(),
                     .dilation = each_dim(options.dilation, spatial),
                     .groups = options.groups};
  const auto positive = [](int64_t value) { return value >= 1; };
  const auto strides = window.stride.list(), dilations = window.dilation.list();
  if (!std::all_of(strides.begin(), strides.end(), positive) ||
      !std::all_of(dilations.begin(), dilations.end(), positive) || options.groups < 1) {
    throw Error(ErrorKind::argument, std::string(layer) +
                                         ": stride, dilation and groups are at least 1; got a smaller number; use 1 " +
                                         "for neighbouring elements and one group");
  }
  product_of_sizes(layer, {weight.size(-2), options.groups});  // all channels of the other side
  if (options.pad.is_same()) {
    int64_t kernel[3] = {};
    for (int d = 0; d < spatial; ++d) {
      const int64_t gaps = std::max<int64_t>(weight.size(d) - 1, 0);
      const int64_t spread = product_of_sizes(layer, {gaps, at(window.dilation, d)}) + 1;
      kernel[d] = transposed ? spread - at(window.stride, d) + 1 : spread;
    }
    window.pad = same_padding({kernel, static_cast<size_t>(spatial)});
  }
  return window;
}

Shape weight_shape(std::string_view layer, const Extents& filter, int64_t grouped, int64_t free, int64_t groups) {
  if (groups < 1 || grouped % groups != 0 || free % groups != 0) {
    throw Error(ErrorKind::argument, std::string(layer) +
                                         ": input channel dimension must be divisible by groups; got " +
                                         std::to_string(groups) + " groups for " + std::to_string(grouped) + " and " +
                                         std::to_string(free) + " channels; use another number of groups");
  }
  int64_t sizes[Shape::max_rank];
  size_t rank = 0;
  for (int64_t size : filter.list()) sizes[rank++] = size;
  sizes[rank++] = grouped / groups;
  sizes[rank++] = free;
  return Shape(std::span<const int64_t>(sizes, rank));
}

template <class L> Array checked_images(const Array& x, const Array& weight, int64_t channels, const L& layer) {
  const int rank = weight.rank();
  if (x.rank() != rank) {
    refuse_input(layer.rosin_show(), "expects " + std::to_string(rank) + " dims (spatial..., channels, batch)", x,
                 x.rank() == rank - 1 ? "add the batch dim with unsqueeze(x, -1)" : "reshape it");
  }
  if (x.size(-2) != channels) {
    refuse_input(layer.rosin_show(),
                 "expects size(input, " + std::to_string(rank - 2) + ") == " + std::to_string(channels), x,
                 "images are (spatial..., channels, batch)");
  }
  return matched_input(x, weight, layer);
}

/// Images with `pad` more elements beyond their borders.
Array bordered(const Array& images, const ConvOptions& window, PadMode mode) {
  const auto pads = window.pad.list();
  const size_t spatial = static_cast<size_t>(images.rank()) - 2;
  std::vector<std::pair<int64_t, int64_t>> widths;
  for (size_t d = 0; d < spatial; ++d) {
    if (pads.size() == 2 * spatial && spatial > 0) widths.emplace_back(pads[2 * d], pads[2 * d + 1]);
    else widths.emplace_back(at(window.pad, static_cast<int>(d)), at(window.pad, static_cast<int>(d)));
  }
  return pad(images, widths, mode);
}

ConvOptions without_pad(ConvOptions window) {
  window.pad = 0;
  return window;
}

std::string mode_text(const std::optional<PadMode>& mode) {
  constexpr const char* names[] = {"reflect", "symmetric", "repeat", "circular"};
  return mode ? std::string(", padding_mode=") + names[static_cast<int>(*mode)] : "";
}

Array finished(const Array& y, const Array& bias, const Activation& act) {
  return act(bias.is_nothing() ? y : y + along_dim(beside(bias, y), y.rank() - 2, y.rank()));
}

std::string option_text(const char* name, const Extents& extents, int64_t usual) {
  const auto list = extents.list();
  for (int64_t value : list) {
    if (value != usual)
      return std::string(", ") + name + "=" + compact_text(list.data(), static_cast<int>(list.size()));
  }
  return "";
}

std::string text_of(const char* name, const Array& weight, const Array& bias, const Activation& act,
                    const ConvOptions& window, bool transposed, const std::optional<PadMode>& mode = {}) {
  if (weight.is_nothing()) return std::string(name) + "()";
  const Shape shape = weight.shape();
  const int spatial = shape.rank() - 2;
  const int64_t grouped = shape[-2] * window.groups, free = shape[-1];
  return std::string(name) + "(" + tuple_text(shape.begin(), spatial) + ", " +
         std::to_string(transposed ? free : grouped) + " => " + std::to_string(transposed ? grouped : free) +
         activation_text(act) + option_text("pad", window.pad, 0) + option_text("stride", window.stride, 1) +
         option_text("dilation", window.dilation, 1) +
         (window.groups == 1 ? "" : ", groups=" + std::to_string(window.groups)) + mode_text(mode) +
         (bias.is_nothing() ? ", bias=false)" : ")");
}

}  // namespace

Conv::Conv(const Extents& filter, int64_t in, int64_t out, Activation activation, const ConvLayerOptions& options)
    : Conv(options.init(weight_shape("Conv", filter, in, out, options.groups)), options.bias, std::move(activation),
           options) {}

Conv::Conv(const Array& w, const Array& b, Activation activation, const ConvLayerOptions& options)
    : weight(w), act(std::move(activation)), window(window_for("Conv", w, options, false)),
      padding_mode(options.padding_mode) {
  eval(weight);
  bias = bias_for("Conv", b, w, {w.size(-1)});
}

Array Conv::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array images = checked_images(x, weight, weight.size(-2) * window.groups, *this);
    return finished(padding_mode ? conv(bordered(images, window, *padding_mode), weight, without_pad(window))
                                 : conv(images, weight, window),
                    bias, act);
  });
}

std::string Conv::rosin_show() const { return text_of("Conv", weight, bias, act, window, false, padding_mode); }

CrossCor::CrossCor(const Extents& filter, int64_t in, int64_t out, Activation activation,
                   const ConvLayerOptions& options)
    : CrossCor(options.init(weight_shape("CrossCor", filter, in, out, options.groups)), options.bias,
               std::move(activation), options) {}

CrossCor::CrossCor(const Array& w, const Array& b, Activation activation, const ConvLayerOptions& options)
    : weight(w), act(std::move(activation)), window(window_for("CrossCor", w, options, false)),
      padding_mode(options.padding_mode) {
  eval(weight);
  bias = bias_for("CrossCor", b, w, {w.size(-1)});
}

Array CrossCor::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array images = checked_images(x, weight, weight.size(-2) * window.groups, *this);
    return finished(padding_mode ? crosscor(bordered(images, window, *padding_mode), weight, without_pad(window))
                                 : crosscor(images, weight, window),
                    bias, act);
  });
}

std::string CrossCor::rosin_show() const { return text_of("CrossCor", weight, bias, act, window, false, padding_mode); }

ConvTranspose::ConvTranspose(const Extents& filter, int64_t in, int64_t out, Activation activation,
                             const ConvTransposeOptions& options)
    : ConvTranspose(options.init(weight_shape("ConvTranspose", filter, out, in, options.groups)), options.bias,
                    std::move(activation), options) {}

ConvTranspose::ConvTranspose(const Array& w, const Array& b, Activation activation, const ConvTransposeOptions& options)
    : weight(w), act(std::move(activation)), window(window_for("ConvTranspose", w, options, true)),
      outpad(options.outpad) {
  eval(weight);
  bias = bias_for("ConvTranspose", b, w, {w.size(-2) * options.groups});
}

Array ConvTranspose::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array images = checked_images(x, weight, weight.size(-1), *this);
    return finished(conv_transpose(images, weight, window, outpad), bias, act);
  });
}

std::string ConvTranspose::rosin_show() const { return text_of("ConvTranspose", weight, bias, act, window, true); }

CrossCorTranspose::CrossCorTranspose(const Extents& filter, int64_t in, int64_t out, Activation activation,
                                     const ConvTransposeOptions& options)
    : CrossCorTranspose(options.init(weight_shape("CrossCorTranspose", filter, out, in, options.groups)), options.bias,
                        std::move(activation), options) {}

CrossCorTranspose::CrossCorTranspose(const Array& w, const Array& b, Activation activation,
                                     const ConvTransposeOptions& options)
    : weight(w), act(std::move(activation)), window(window_for("CrossCorTranspose", w, options, true)),
      outpad(options.outpad) {
  eval(weight);
  bias = bias_for("CrossCorTranspose", b, w, {product_of_sizes("CrossCorTranspose", {w.size(-2), options.groups})});
}

Array CrossCorTranspose::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array images = checked_images(x, weight, weight.size(-1), *this);
    return finished(crosscor_transpose(images, weight, window, outpad), bias, act);
  });
}

std::string CrossCorTranspose::rosin_show() const {
  return text_of("CrossCorTranspose", weight, bias, act, window, true);
}

Conv DepthwiseConv(const Extents& filter, int64_t in, int64_t out, Activation activation,
                   const ConvLayerOptions& options) {
  ConvLayerOptions grouped = options;
  grouped.groups = in;
  return Conv(filter, in, out, std::move(activation), grouped);
}

}  // namespace rosin
