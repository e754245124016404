// Conversions of pooling over images (spatial..., channels, batch). Read first: windows.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"
#include "onnx/windows.hpp"

namespace rosin::onnx {
namespace {

size_t spatial_dims(const NodeCall& call) {
  if (call[0].rank() < 3) call.refuse("images have axes beside channels and batch", to_string(call[0].shape()));
  return static_cast<size_t>(call[0].rank() - 2);
}

Windows pool_windows(const NodeCall& call) {
  const std::vector<int64_t> size = reversed(call.integers("kernel_shape"));
  if (size.size() != spatial_dims(call))
    call.refuse("kernel_shape must have a number for each axis", std::to_string(size.size()));
  return windows_of(call, call[0], size);
}

Array padded(const Array& x, const Windows& windows, const Array& value) {
  Array y = x;
  for (size_t d = 0; d < windows.dims(); ++d) {
    y = pad(y, static_cast<int>(d), windows.low[d], windows.high[d] + windows.extra[d], value);
  }
  return y;
}

/// How many places a window has. Error (io): more than can be gone through one by one; (shape): a window does not fit.
int64_t checked_places(const Array& x, const Windows& windows) {
  double places = 1;
  for (size_t d = 0; d < windows.dims(); ++d) {
    places *= static_cast<double>(windows.size[d]);
    if (windows.reach(d) > x.size(static_cast<int>(d))) {
      throw Error(ErrorKind::shape, "a window must fit into the padded input; got " + std::to_string(windows.reach(d)) +
                                        " for " + to_string(x.shape()) + "; the model is for larger images");
    }
  }
  if (places <= 1 << 16) return product(windows.size);
  throw Error(ErrorKind::io, "a window has at most 2^16 places; got more; use another pooling");
}

/// Calls `take` with the elements at each place of the windows: slices of the padded x, one for each.
template <class Take> void each_place(const Array& x, const Windows& windows, Take take) {
  const int64_t places = checked_places(x, windows);
  for (int64_t place = 0; place < places; ++place) {
    Array part = x;
    int64_t rest = place;
    for (size_t d = 0; d < windows.dims(); ++d) {
      const int dim = static_cast<int>(d);
      const int64_t at = rest % windows.size[d] * windows.dilation[d];
      rest /= windows.size[d];
      const int64_t count = (x.size(dim) - windows.reach(d)) / windows.stride[d] + 1;
      part = slice(part, dim, at, at + (count - 1) * windows.stride[d] + 1, windows.stride[d]);
    }
    take(part);
  }
}

Array lowest(DType type) {
  if (is_float(type)) return as(-std::numeric_limits<double>::infinity(), type);
  return as(type == Int8 ? -128 : 0, type);
}

/// Places in the order of the file, each image of a channel and batch after the other.
Array element_places(const NodeCall& call, const Array& x) {
  const bool swapped = call.integer("storage_order", 0) != 0;
  const int rank = x.rank();
  Array places = full({}, 0, Int64);
  int64_t stride = 1;
  for (int d = 0; d < rank; ++d) {
    const int dim = swapped && d < rank - 2 ? rank - 3 - d : d;
    places = places + along(as(arange(x.size(dim)), Int64) * stride, dim, rank);
    stride *= x.size(dim);
  }
  return expand(places, x.shape());
}

bool is_plain(const Array& x, const Windows& windows) {
  return windows.dims() <= 3 && is_float(x.dtype()) && !windows.is_dilated();
}

Array summed(const Array& x, const Windows& windows) {
  Array total;
  each_place(x, windows, [&](const Array& part) { total = total.is_nothing() ? part : total + part; });
  return total;
}

}  // namespace

Arrays max_pool(const NodeCall& call) {
  const Array& x = call[0];
  const Windows windows = pool_windows(call);
  if (windows.dims() <= 3 && is_float(x.dtype()) && !call.wants(1)) {
    const WindowOptions steps{.dilation = extents(windows.dilation)};
    return {maxpool(x, extents(windows.size), extents(windows.stride), windows.pads(), steps)};
  }
  Array best;
  each_place(padded(x, windows, lowest(x.dtype())), windows,
             [&](const Array& part) { best = best.is_nothing() ? part : max(best, part); });
  if (!call.wants(1)) return {best};
  // The first place, in the order of the file, that has the largest element.
  const int64_t none = std::numeric_limits<int64_t>::max();
  Arrays values, places;
  each_place(padded(x, windows, lowest(x.dtype())), windows, [&](const Array& part) { values.push_back(part); });
  each_place(padded(element_places(call, x), windows, as(none, Int64)), windows,
             [&](const Array& part) { places.push_back(part); });
  Array first = full(best.shape(), none, Int64);
  for (size_t i = 0; i < values.size(); ++i) first = where(eq(values[i], best), min(first, places[i]), first);
  return {best, first};
}

/// Padding counts on request; what rounding up adds never does.
Arrays average_pool(const NodeCall& call) {
  const Array& x = call[0];
  const Windows windows = pool_windows(call);
  const bool counts = call.integer("count_include_pad", 0) != 0;
  const bool rounded = std::any_of(windows.extra.begin(), windows.extra.end(), [](int64_t width) { return width > 0; });
  const bool weighted = rounded || (windows.is_padded() && !counts);
  if (is_plain(x, windows) && !weighted) {
    return {meanpool(x, extents(windows.size), extents(windows.stride), windows.pads())};
  }
  std::vector<int64_t> sizes = sizes_of(x);
  sizes[sizes.size() - 1] = sizes[sizes.size() - 2] = 1;
  Array weight = ones(Shape(std::span<const int64_t>(sizes)), x.dtype());
  for (size_t d = 0; d < windows.dims(); ++d) {
    weight = pad(weight, static_cast<int>(d), windows.low[d], windows.high[d], as(counts ? 1 : 0, x.dtype()));
    weight = pad(weight, static_cast<int>(d), 0, windows.extra[d]);
  }
  const Array full_x = padded(x, windows, 0);
  if (is_plain(x, windows)) {
    const Extents size = extents(windows.size), stride = extents(windows.stride);
    return {meanpool(full_x, size, stride) / meanpool(weight, size, stride)};
  }
  return {summed(full_x, windows) / summed(weight, windows)};
}

Arrays lp_pool(const NodeCall& call) {
  const double p =
      static_cast<double>(call.opset() < 2 ? static_cast<int64_t>(call.real("p", 2)) : call.integer("p", 2));
  const Windows windows = pool_windows(call);
  const Array total = summed(padded(pow(abs(call[0]), p), windows, 0), windows);
  return {pow(total, 1.0 / p)};
}

Arrays global_max_pool(const NodeCall& call) {
  std::vector<int> dims;
  for (size_t d = 0; d < spatial_dims(call); ++d) dims.push_back(static_cast<int>(d));
  return {maximum(call[0], Dims(std::span<const int>(dims)))};
}

Arrays global_average_pool(const NodeCall& call) {
  std::vector<int> dims;
  for (size_t d = 0; d < spatial_dims(call); ++d) dims.push_back(static_cast<int>(d));
  return {mean(call[0], Dims(std::span<const int>(dims)))};
}

Arrays global_lp_pool(const NodeCall& call) {
  std::vector<int> dims;
  for (size_t d = 0; d < spatial_dims(call); ++d) dims.push_back(static_cast<int>(d));
  return {norm(call[0], Dims(std::span<const int>(dims)), static_cast<double>(call.integer("p", 2)))};
}

}  // namespace rosin::onnx
