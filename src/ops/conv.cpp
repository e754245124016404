// Convolution: three contractions (forward, by data, by weights), each the gradient of the others.
#include <rosin/conv.hpp>

#include <rosin/elementwise.hpp>

#include "base/sizes.hpp"
#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/reduction.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

constexpr uint8_t window_words = sizeof(WindowAttributes) / 8;

Array forward(const Array& x, const Array& w, const Attributes& attributes, const Shape& y);
Array by_data(const Array& dy, const Array& w, const Attributes& attributes, const Shape& x);
Array by_weights(const Array& x, const Array& dy, const Attributes& attributes, const Shape& w);

const Op& conv_op = *register_op({.name = "conv",
                                  .kind = Kind::contraction,
                                  .operands = 2,
                                  .doc = "convolution or cross-correlation of images with kernels",
                                  .type_rule = TypeRule::attribute,
                                  .contraction = Contraction::convolution,
                                  .attribute_words = window_words,
                                  .gradient = [](Backward& b) {
                                    const Attributes& a = b.node().attributes;
                                    if (b.needs(0)) b.give(0, by_data(b.gradient, b.in(1), a, b.in(0).shape()));
                                    if (b.needs(1)) b.give(1, by_weights(b.in(0), b.gradient, a, b.in(1).shape()));
                                  }});

const Op& conv_data_op = *register_op({.name = "conv_data",
                                       .kind = Kind::contraction,
                                       .operands = 2,
                                       .doc = "gradient of conv by its images; transposed convolution",
                                       .type_rule = TypeRule::attribute,
                                       .contraction = Contraction::convolution_data,
                                       .attribute_words = window_words,
                                       .gradient = [](Backward& b) {
                                         const Attributes& a = b.node().attributes;
                                         if (b.needs(0)) b.give(0, forward(b.gradient, b.in(1), a, b.in(0).shape()));
                                         if (b.needs(1)) b.give(1, by_weights(b.gradient, b.in(0), a, b.in(1).shape()));
                                       }});

const Op& conv_weights_op = *register_op({.name = "conv_weights",
                                          .kind = Kind::contraction,
                                          .operands = 2,
                                          .doc = "gradient of conv by its kernels",
                                          .type_rule = TypeRule::attribute,
                                          .contraction = Contraction::convolution_weights,
                                          .attribute_words = window_words,
                                          .gradient = [](Backward& b) {
                                            const Attributes& a = b.node().attributes;
                                            if (b.needs(0)) b.give(0, by_data(b.in(1), b.gradient, a, b.in(0).shape()));
                                            if (b.needs(1)) b.give(1, forward(b.in(0), b.gradient, a, b.in(1).shape()));
                                          }});

Array recorded(const Op& op, const Array& a, const Array& b, const Attributes& attributes, const Shape& shape) {
  const Array* in[] = {&a, &b};
  return record(op, in, a.dtype(), shape, attributes);
}
Array forward(const Array& x, const Array& w, const Attributes& attributes, const Shape& y) {
  return recorded(conv_op, x, w, attributes, y);
}
Array by_data(const Array& dy, const Array& w, const Attributes& attributes, const Shape& x) {
  return recorded(conv_data_op, dy, w, attributes, x);
}
Array by_weights(const Array& x, const Array& dy, const Attributes& attributes, const Shape& w) {
  return recorded(conv_weights_op, x, dy, attributes, w);
}

/// Both operands in the type that they are multiplied in.
void match_types(std::string_view name, const Op& op, Array& x, Array& w) {
  require_real(name, x);
  require_real(name, w);
  if (is_autocast()) x = halved(x), w = halved(w);
  const Array* both[] = {&x, &w};
  const DType type = sum_type(common_type(op, both));
  if (x.dtype() != type) x = cast(x, type);
  if (w.dtype() != type) w = cast(w, type);
}

void check_ranks(std::string_view op, const Array& x, const Array& w, int spatial) {
  if (w.rank() == x.rank()) return;
  if (w.rank() == x.rank() + 1) {
    refuse(ErrorKind::shape, op, "x must be (spatial..., channels, batch)",
           to_string(x.shape()) + " for kernels " + to_string(w.shape()),
           "add the batch dim with unsqueeze(x, " + std::to_string(x.rank()) + ")");
  }
  refuse(ErrorKind::shape, op, "kernels must be (kernel..., in / groups, out)",
         to_string(w.shape()) + " for images with " + std::to_string(spatial) + " spatial dims",
         "use as many kernel dims");
}

/// What one window reads of the input along a dim. The kernel has an element.
int64_t span_of(std::string_view op, int64_t kernel, int64_t dilation) {
  return product_of_sizes(op, {kernel - 1, dilation}) + 1;
}

WindowAttributes attributes_of(std::string_view op, const Array& w, const ConvOptions& options, int spatial,
                               bool flipped) {
  WindowAttributes a;
  a.groups = narrowed<int16_t>(op, "groups", options.groups);
  a.flipped = flipped;
  for (int d = 0; d < spatial; ++d) {
    const int64_t stride = extent_for(op, "stride", options.stride, d, spatial, 1);
    const int64_t dilation = extent_for(op, "dilation", options.dilation, d, spatial, 1);
    const Padding pad = padding_for(op, options.pad, d, spatial);
    if (stride < 1 || dilation < 1 || pad.low < 0 || pad.high < 0 || options.groups < 1 || w.size(d) < 1) {
      refuse(ErrorKind::argument, op, "kernel, stride, dilation and groups are at least 1, pads at least 0",
             "kernel " + std::to_string(w.size(d)) + ", stride " + std::to_string(stride) + ", dilation " +
                 std::to_string(dilation) + ", pad (" + std::to_string(pad.low) + ", " + std::to_string(pad.high) +
                 "), groups " + std::to_string(options.groups),
             "use larger numbers");
    }
    a.stride[d] = narrowed<int32_t>(op, "stride", stride);
    a.dilation[d] = narrowed<int32_t>(op, "dilation", dilation);
    a.pad_low[d] = narrowed<int32_t>(op, "pad", pad.low);
    a.pad_high[d] = narrowed<int32_t>(op, "pad", pad.high);
  }
  return a;
}

void check_channels(std::string_view op, const Array& x, const Array& w, int64_t groups) {
  const int64_t channels = x.size(-2);
  if (channels % groups != 0 || w.size(-1) % groups != 0) {
    refuse(ErrorKind::argument, op, "groups must divide the channels of input and output",
           std::to_string(groups) + " groups for " + std::to_string(channels) + " and " + std::to_string(w.size(-1)) +
               " channels",
           "use another number of groups");
  }
  if (channels / groups == w.size(-2)) return;
  refuse(ErrorKind::shape, op, "kernels and images must have the same channels",
         "images " + to_string(x.shape()) + " with " + std::to_string(channels) + " channels, kernels " +
             to_string(w.shape()) + " for " + std::to_string(w.size(-2) * groups),
         "images are (spatial..., channels, batch), kernels (kernel..., in / groups, out)");
}

Array convolved(const Array& images, const Array& kernels, const ConvOptions& options, bool flipped) {
  const std::string_view op = flipped ? "conv" : "crosscor";
  require(conv_op, images);
  require(conv_op, kernels);
  Array x = images, w = kernels;
  check_ranks(op, x, w, x.rank() - 2);
  const int spatial = spatial_dims(op, x);
  match_types(op, conv_op, x, w);
  const WindowAttributes a = attributes_of(op, w, options, spatial, flipped);
  check_channels(op, x, w, options.groups);
  Shape y = x.shape();
  for (int d = 0; d < spatial; ++d) {
    const int64_t free = x.size(d) + a.pad_low[d] + a.pad_high[d] - span_of(op, w.size(d), a.dilation[d]);
    if (free < 0) {
      refuse(ErrorKind::shape, op, "the padded input must be at least as large as the kernel",
             "input " + to_string(x.shape()) + ", kernel " + to_string(w.shape()) + " in dim " + std::to_string(d),
             "use larger images, more padding or a smaller kernel");
    }
    y = with_size(y, d, free / a.stride[d] + 1);
  }
  return forward(x, w, Attributes::of(a), with_size(y, spatial, w.size(-1)));
}

}  // namespace

Array conv(const Array& x, const Array& w, const ConvOptions& options) { return convolved(x, w, options, true); }
Array crosscor(const Array& x, const Array& w, const ConvOptions& options) { return convolved(x, w, options, false); }

namespace {

Array transposed(const Array& images, const Array& kernels, const ConvOptions& options, const Extents& outpad,
                 bool flipped) {
  const std::string_view op = flipped ? "conv_transpose" : "crosscor_transpose";
  require(conv_data_op, images);
  require(conv_data_op, kernels);
  Array x = images, w = kernels;
  check_ranks(op, x, w, x.rank() - 2);
  const int spatial = spatial_dims(op, x);
  match_types(op, conv_data_op, x, w);
  const WindowAttributes a = attributes_of(op, w, options, spatial, flipped);
  if (x.size(-2) != w.size(-1) || x.size(-2) % options.groups != 0) {
    refuse(ErrorKind::shape, op, "kernels must be (kernel..., out / groups, in) for the images' channels",
           "images " + to_string(x.shape()) + ", kernels " + to_string(w.shape()),
           "swap the last two dims of the kernels");
  }
  Shape y = with_size(x.shape(), spatial, product_of_sizes(op, {w.size(-2), options.groups}));
  for (int d = 0; d < spatial; ++d) {
    const int64_t extra = extent_for(op, "outpad", outpad, d, spatial, 0);
    if (x.size(d) < 1) {
      refuse(ErrorKind::shape, op, "images must have at least one pixel in each spatial dim", to_string(x.shape()),
             "an empty batch is taken, empty images are not");
    }
    if (extra < 0 || extra >= std::max<int64_t>(a.stride[d], a.dilation[d])) {
      refuse(ErrorKind::shape, op, "outpad must be smaller than stride or dilation",
             "outpad " + std::to_string(extra) + " in dim " + std::to_string(d), "use a smaller outpad");
    }
    const int64_t size = product_of_sizes(op, {x.size(d) - 1, a.stride[d]}) + span_of(op, w.size(d), a.dilation[d]) -
                         a.pad_low[d] - a.pad_high[d] + extra;
    if (size < 1) {
      refuse(ErrorKind::shape, op, "sizes must be positive",
             "size " + std::to_string(size) + " in dim " + std::to_string(d), "use less padding");
    }
    y = with_size(y, d, size);
  }
  return by_data(x, w, Attributes::of(a), y);
}

}  // namespace

Array conv_transpose(const Array& x, const Array& w, const ConvOptions& options, const Extents& outpad) {
  return transposed(x, w, options, outpad, true);
}
Array crosscor_transpose(const Array& x, const Array& w, const ConvOptions& options, const Extents& outpad) {
  return transposed(x, w, options, outpad, false);
}

}  // namespace rosin
