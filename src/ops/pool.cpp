// Pooling, recorded as window ops; their gradients are window ops too, so second gradients exist.
#include <rosin/pool.hpp>

#include <rosin/reduce.hpp>

#include "base/sizes.hpp"
#include "graph/refuse_type.hpp"
#include "ops/reduction.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

Array pick(const Array& x, const Array& from, const Attributes& attributes, const Shape& shape);
Array maximum_gradient(const Array& x, const Array& y, const Array& dy, const Attributes& attributes);
Array mean_gradient(const Array& dy, const Attributes& attributes, const Shape& shape);
Array mean_pool(const Array& x, const Attributes& attributes, const Shape& shape);

constexpr uint8_t window_words = sizeof(WindowAttributes) / 8;

const Op& maxpool_op = *register_op(
    {.name = "maxpool",
     .kind = Kind::window,
     .operands = 1,
     .doc = "largest element of each window; the gradient goes to the first one",
     .window = Window::maximum,
     .attribute_words = window_words,
     .gradient = [](Backward& b) { b.give(0, maximum_gradient(b.in(0), b.out(), b.gradient, b.node().attributes)); }});

const Op& meanpool_op = *register_op(
    {.name = "meanpool",
     .kind = Kind::window,
     .operands = 1,
     .doc = "mean of each window, padding counted",
     .type_rule = TypeRule::floating,
     .window = Window::mean,
     .attribute_words = window_words,
     .gradient = [](Backward& b) { b.give(0, mean_gradient(b.gradient, b.node().attributes, b.in(0).shape())); }});

// Linear in dy; its adjoint picks at the same places.
const Op& maximum_gradient_op =
    *register_op({.name = "maxpool_gradient",
                  .kind = Kind::window,
                  .operands = 3,
                  .doc = "dy of each window, added at the window's first largest element",
                  .window = Window::maximum_gradient,
                  .attribute_words = window_words,
                  .gradient = [](Backward& b) {
                    if (b.needs(2)) b.give(2, pick(b.in(0), b.gradient, b.node().attributes, b.in(2).shape()));
                  }});

const Op& pick_op =
    *register_op({.name = "maxpool_pick",
                  .kind = Kind::window,
                  .operands = 2,
                  .doc = "of operand 1, what stands where operand 0 has each window's first largest element",
                  .window = Window::maximum_pick,
                  .attribute_words = window_words,
                  .gradient = [](Backward& b) {
                    if (!b.needs(1)) return;
                    b.give(1, maximum_gradient(b.in(0), b.out(), b.gradient, b.node().attributes));
                  }});

const Op& mean_gradient_op = *register_op(
    {.name = "meanpool_gradient",
     .kind = Kind::window,
     .operands = 1,
     .doc = "dy of each window, divided by its size and added to all its elements",
     .window = Window::mean_gradient,
     .attribute_words = window_words,
     .gradient = [](Backward& b) { b.give(0, mean_pool(b.gradient, b.node().attributes, b.in(0).shape())); }});

Array pick(const Array& x, const Array& from, const Attributes& attributes, const Shape& shape) {
  const Array* in[] = {&x, &from};
  return record(pick_op, in, from.dtype(), shape, attributes);
}

Array maximum_gradient(const Array& x, const Array& y, const Array& dy, const Attributes& attributes) {
  const Array* in[] = {&x, &y, &dy};
  return record(maximum_gradient_op, in, dy.dtype(), x.shape(), attributes);
}

Array mean_gradient(const Array& dy, const Attributes& attributes, const Shape& shape) {
  return record_one(mean_gradient_op, dy, dy.dtype(), shape, attributes);
}

Array mean_pool(const Array& x, const Attributes& attributes, const Shape& shape) {
  return record_one(meanpool_op, x, x.dtype(), shape, attributes);
}

// Attributes and the result's sizes.
struct Windows {
  WindowAttributes attributes;
  Shape out;
};

void add_window(std::string_view op, Windows& windows, int d, int64_t window, int64_t stride, Padding pad) {
  const int64_t size = windows.out[d];
  const bool positive = window >= 1 && stride >= 1 && pad.low >= 0 && pad.high >= 0;
  if (!positive || sum_of_sizes(op, {size, pad.low, pad.high}) < window) {
    refuse(ErrorKind::shape, op, "the window must be at least 1 and fit the padded input, the stride at least 1",
           "size " + std::to_string(size) + ", window " + std::to_string(window) + ", stride " +
               std::to_string(stride) + ", pad (" + std::to_string(pad.low) + ", " + std::to_string(pad.high) +
               ") in dim " + std::to_string(d),
           "use a smaller window or more padding");
  }
  windows.attributes.window[d] = narrowed<int16_t>(op, "window", window);
  windows.attributes.stride[d] = narrowed<int32_t>(op, "stride", stride);
  windows.attributes.pad_low[d] = narrowed<int32_t>(op, "pad", pad.low);
  windows.attributes.pad_high[d] = narrowed<int32_t>(op, "pad", pad.high);
  windows.out = with_size(windows.out, d, (size + pad.low + pad.high - window) / stride + 1);
}

Windows windows_of(const Op& op, const Array& x, const Extents& window, const Extents& stride, const Extents& pad) {
  require(op, x);
  const int spatial = spatial_dims(op.name, x);
  Windows windows{{}, x.shape()};
  for (int16_t& size : windows.attributes.window) size = 1;
  for (int d = 0; d < spatial; ++d) {
    const int64_t size = extent_for(op.name, "window", window, d, spatial, 0);
    const int64_t step = extent_for(op.name, "stride", stride, d, spatial, size);
    add_window(op.name, windows, d, size, step, padding_for(op.name, pad, d, spatial));
  }
  return windows;
}

Windows adaptive_windows(std::string_view name, const Op& op, const Array& x, const Extents& out) {
  require(op, x);
  const int spatial = spatial_dims(name, x);
  Windows windows{{}, x.shape()};
  for (int16_t& size : windows.attributes.window) size = 1;
  for (int d = 0; d < spatial; ++d) {
    const int64_t wanted = extent_for(name, "out", out, d, spatial, 0);
    const int64_t size = x.size(d);
    if (wanted < 1 || wanted > size) {
      refuse(ErrorKind::shape, name, "the result's sizes must be in [1, input size]",
             std::to_string(wanted) + " for an input of " + std::to_string(size), "use a smaller size");
    }
    const int64_t stride = size / wanted;
    add_window(name, windows, d, size - (wanted - 1) * stride, stride, {});
  }
  return windows;
}

Array pooled(std::string_view name, const Op& op, const Array& x, const Windows& windows) {
  if (x.dtype() == Bool) refuse(ErrorKind::dtype, name, "it takes numbers", "Bool", "convert with cast(x, Float32)");
  require_real(name, x);
  return record_one(op, x, x.dtype(), windows.out, Attributes::of(windows.attributes));
}

uint64_t spatial_mask(std::string_view op, const Array& x) { return (uint64_t{1} << spatial_dims(op, x)) - 1; }

const bool named[] = {name_function(global_maxpool, "global_maxpool"),
                      name_function(global_meanpool, "global_meanpool")};

}  // namespace

Extents::Extents(std::span<const int64_t> values) {
  if (values.size() > 6) {
    refuse(ErrorKind::argument, "extents", "there are at most three spatial dims with two numbers each",
           std::to_string(values.size()) + " numbers", "give one number or one for each dim");
  }
  for (const int64_t value : values) values_[count_++] = value;
}

Array maxpool(const Array& x, const Extents& window, const Extents& stride, const Extents& pad) {
  return pooled("maxpool", maxpool_op, x, windows_of(maxpool_op, x, window, stride, pad));
}

Array meanpool(const Array& x, const Extents& window, const Extents& stride, const Extents& pad) {
  const Windows windows = windows_of(meanpool_op, x, window, stride, pad);
  return pooled("meanpool", meanpool_op, as_float(x), windows);
}

Array adaptive_maxpool(const Array& x, const Extents& out) {
  constexpr std::string_view name = "adaptive_maxpool";
  return pooled(name, maxpool_op, x, adaptive_windows(name, maxpool_op, x, out));
}

Array adaptive_meanpool(const Array& x, const Extents& out) {
  constexpr std::string_view name = "adaptive_meanpool";
  const Windows windows = adaptive_windows(name, meanpool_op, x, out);
  return pooled(name, meanpool_op, as_float(x), windows);
}

Array global_maxpool(const Array& x) {
  require_real("global_maxpool", x);
  return maximum_over(x, spatial_mask("global_maxpool", x));
}
Array global_meanpool(const Array& x) { return mean_over(x, spatial_mask("global_meanpool", x)); }

}  // namespace rosin
