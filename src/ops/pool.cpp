// Pooling, recorded as window ops; their gradients are window ops too, so second gradients exist.
// Read next: pool_places.cpp.
#include <rosin/pool.hpp>

#include <algorithm>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "base/sizes.hpp"
#include "graph/context.hpp"
#include "graph/handle.hpp"
#include "graph/refuse_type.hpp"
#include "ops/reduction.hpp"
#include "ops/slopes.hpp"
#include "ops/stop_gradient.hpp"
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
  int64_t beyond[3] = {};  // the part of pad_high that only rounding up adds
};

/// A window along one dim.
struct Window1d {
  int64_t size, stride, dilation;
  Padding pad;
  bool ceil;
};

/// Whether there is a window in so many elements. (Its reach may be more than a number holds.)
bool fits(const Window1d& window, int64_t elements) {
  return elements >= 1 && (elements - 1) / window.dilation + 1 >= window.size;
}

/// The number of windows, and, where it is rounded up, `extra`: how far the last one leaves the padded image.
int64_t count_windows(int64_t padded, int64_t reach, const Window1d& window, int64_t& extra) {
  const int64_t rest = padded - reach, whole = rest / window.stride + 1;
  const bool begins_inside = whole * window.stride < padded - window.pad.high;
  const bool one_more = window.ceil && rest % window.stride != 0 && begins_inside;
  extra = one_more ? window.stride - rest % window.stride : 0;
  return whole + (one_more ? 1 : 0);
}

void add_window(std::string_view op, Windows& windows, int d, const Window1d& window) {
  const int64_t size = windows.out[d];
  const auto [low, high] = window.pad;
  const bool positive = window.size >= 1 && window.stride >= 1 && window.dilation >= 1 && low >= 0 && high >= 0;
  if (!positive || !fits(window, sum_of_sizes(op, {size, low, high}))) {
    refuse(ErrorKind::shape, op, "the window must be at least 1 and fit the padded input, the stride at least 1",
           "size " + std::to_string(size) + ", window " + std::to_string(window.size) + ", stride " +
               std::to_string(window.stride) + ", pad (" + std::to_string(low) + ", " + std::to_string(high) + ")" +
               (window.dilation == 1 ? "" : ", dilation " + std::to_string(window.dilation)) + " in dim " +
               std::to_string(d),
           "use a smaller window or more padding");
  }
  int64_t extra = 0;
  const int64_t reach = (window.size - 1) * window.dilation + 1;
  const int64_t count = count_windows(size + low + high, reach, window, extra);
  windows.attributes.window[d] = narrowed<int16_t>(op, "window", window.size);
  windows.attributes.stride[d] = narrowed<int32_t>(op, "stride", window.stride);
  windows.attributes.dilation[d] = narrowed<int32_t>(op, "dilation", window.dilation);
  windows.attributes.pad_low[d] = narrowed<int32_t>(op, "pad", low);
  windows.attributes.pad_high[d] = narrowed<int32_t>(op, "pad", high + extra);
  windows.beyond[d] = extra;
  windows.out = with_size(windows.out, d, count);
}

Windows windows_of(const Op& op, const Array& x, const Extents& window, const Extents& stride, const Extents& pad,
                   const WindowOptions& options) {
  require(op, x);
  const int spatial = spatial_dims(op.name, x);
  Windows windows{{}, x.shape()};
  for (int16_t& size : windows.attributes.window) size = 1;
  for (int d = 0; d < spatial; ++d) {
    const int64_t size = extent_for(op.name, "window", window, d, spatial, 0);
    const int64_t step = extent_for(op.name, "stride", stride, d, spatial, size);
    const int64_t dilation = extent_for(op.name, "dilation", options.dilation, d, spatial, 1);
    add_window(op.name, windows, d, {size, step, dilation, padding_for(op.name, pad, d, spatial), options.ceil});
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
    add_window(name, windows, d, {size - (wanted - 1) * stride, stride, 1, {}, false});
  }
  return windows;
}

Array pooled(std::string_view name, const Op& op, const Array& x, const Windows& windows) {
  if (x.dtype() == Bool) refuse(ErrorKind::dtype, name, "it takes numbers", "Bool", "convert with cast(x, Float32)");
  require_real(name, x);
  return record_one(op, x, x.dtype(), windows.out, Attributes::of(windows.attributes));
}

/// How many elements of window number `at` along dim d are counted: those of the image or, with padding, all but those
/// that leave the padded image.
int64_t counted_in(const Windows& windows, int d, int64_t at, int64_t image, bool with_padding) {
  const WindowAttributes& a = windows.attributes;
  const int64_t first = at * a.stride[d] - a.pad_low[d];
  const int64_t low = with_padding ? -a.pad_low[d] : 0;
  const int64_t high = with_padding ? image + a.pad_high[d] - windows.beyond[d] : image;
  int64_t count = 0;
  for (int64_t k = 0; k < a.window[d]; ++k) {
    const int64_t place = first + k * a.dilation[d];
    count += place >= low && place < high ? 1 : 0;
  }
  return count;
}

/// Means of whole windows as means of what is counted in them.
Array corrected(Array y, const Array& x, const Windows& windows, bool count_pad) {
  for (int d = 0; d < x.rank() - 2; ++d) {
    const int64_t window = windows.attributes.window[d];
    std::vector<double> factors;
    bool differs = false;
    for (int64_t at = 0; at < windows.out[d]; ++at) {
      const int64_t count = std::max<int64_t>(counted_in(windows, d, at, x.size(d), count_pad), 1);
      factors.push_back(static_cast<double>(window) / static_cast<double>(count));
      differs = differs || count != window;
    }
    if (!differs) continue;
    std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
    sizes[static_cast<size_t>(d)] = windows.out[d];
    y = y * table(cast(Array(factors, Shape(std::span<const int64_t>(sizes))), y.dtype()));
  }
  return y;
}

double window_count(const Windows& windows) {
  double count = 1;
  for (const int16_t size : windows.attributes.window) count *= size;
  return count;
}

/// The place of each element in its image, in x's type and shape.
Array places_in_image(const Array& x) {
  int64_t count = 1;
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.rank(); ++d) {
    sizes.push_back(d < x.rank() - 2 ? x.size(d) : 1);
    count *= sizes.back();
  }
  const Array places = arange(int64_t{0}, count, 1, ArrayOptions(x.dtype()));
  return expand(reshape(places, Shape(std::span<const int64_t>(sizes))), x.shape());
}

/// x in a type of its own order that holds all places in an image.
Array with_places(const Array& x) {
  if (!is_float(x.dtype())) return size_of(x.dtype()) < 4 ? cast(x, Int32) : x;
  const int64_t plane = x.count() / std::max<int64_t>(x.size(-1) * x.size(-2), 1);
  return plane > int64_t{1} << 24 ? cast(x, Float64) : wide(x);
}

uint64_t spatial_mask(std::string_view op, const Array& x) { return (uint64_t{1} << spatial_dims(op, x)) - 1; }

/// Whether each image is one window.
bool is_global(const Windows& windows, const Array& x) {
  bool global = true;
  for (int d = 0; d < x.rank() - 2; ++d) global = global && windows.out[d] == 1;
  return global;
}

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

Array relu_slope_by_windows(const Array& g, const Array& y) {
  const Node& node = *g.node();
  if (node.op != &maximum_gradient_op || node.recorder != &Context::current() || node.in[0] != y.node()) return {};
  const Array pooled = handle_of(node.in[1]), dy = handle_of(node.in[2]);
  if (dy.dtype() != y.dtype()) return {};
  return maximum_gradient(y, pooled, relu_slope(dy, pooled), node.attributes);
}

Array given_by_windows(const Array& g) {
  static const Op& relu_slope_op = *find_op("relu_slope");
  const Node& node = *g.node();
  if (node.op != &maximum_gradient_op || node.recorder != &Context::current()) return {};
  const Node *const pooled = node.in[1], *const dy = node.in[2];
  if (dy == nullptr || dy->op != &relu_slope_op || dy->in[1] != pooled) return {};  // others may belong to padding
  return handle_of(node.in[2]);
}

Array maxpool(const Array& x, const Extents& window, const Extents& stride, const Extents& pad,
              const WindowOptions& options) {
  return pooled("maxpool", maxpool_op, x, windows_of(maxpool_op, x, window, stride, pad, options));
}

MaxPooled maxpool_with_indices(const Array& x, const Extents& window, const Extents& stride, const Extents& pad,
                               const WindowOptions& options) {
  const Windows windows = windows_of(maxpool_op, x, window, stride, pad, options);
  const Array values = pooled("maxpool", maxpool_op, x, windows);
  const DeviceScope scope(*x.node());
  const Array numbers = stop_gradient(with_places(x));
  const Array places = pick(numbers, places_in_image(numbers), Attributes::of(windows.attributes), windows.out);
  return {values, cast(places, Int64)};
}

Array meanpool(const Array& x, const Extents& window, const Extents& stride, const Extents& pad,
               const MeanWindowOptions& options) {
  const Windows windows = windows_of(meanpool_op, x, window, stride, pad, {options.dilation, options.ceil});
  const bool leaves = options.ceil || !options.count_pad;
  if (!leaves && options.divisor == 0) return pooled("meanpool", meanpool_op, as_float(x), windows);
  const DeviceScope scope(*x.node());
  const Array mean = pooled("meanpool", meanpool_op, wide(as_float(x)), windows);
  if (options.divisor == 0) return narrow(corrected(mean, x, windows, options.count_pad), as_float(x));
  return narrow(mean * (window_count(windows) / static_cast<double>(options.divisor)), as_float(x));
}

Array lpnormpool(const Array& x, double p, const Extents& window, const Extents& stride, const Extents& pad,
                 const WindowOptions& options) {
  if (!(p > 0)) refuse(ErrorKind::argument, "lpnormpool", "p is above 0", std::to_string(p), "2 is the Euclidean norm");
  const Windows windows = windows_of(meanpool_op, x, window, stride, pad, options);
  const Array mean = pooled("lpnormpool", meanpool_op, pow(wide(as_float(x)), p), windows);
  return narrow(pow(mean * window_count(windows), 1 / p), as_float(x));
}

Array adaptive_maxpool(const Array& x, const Extents& out) {
  constexpr std::string_view name = "adaptive_maxpool";
  return pooled(name, maxpool_op, x, adaptive_windows(name, maxpool_op, x, out));
}

Array adaptive_meanpool(const Array& x, const Extents& out) {
  constexpr std::string_view name = "adaptive_meanpool";
  const Windows windows = adaptive_windows(name, meanpool_op, x, out);
  if (is_global(windows, x) && !is_complex(x.dtype())) return mean_over(as_float(x), spatial_mask(name, x));
  return pooled(name, meanpool_op, as_float(x), windows);
}

Array global_maxpool(const Array& x) {
  require_real("global_maxpool", x);
  return maximum_over(x, spatial_mask("global_maxpool", x));
}
Array global_meanpool(const Array& x) { return mean_over(x, spatial_mask("global_meanpool", x)); }

}  // namespace rosin
