// Conversions of convolutions. The file's are cross-correlations of (batch, channels, spatial...), which is
// (spatial..., channels, batch) here; kernels (out, in, spatial...) are (spatial..., in, out). Read first: convert.hpp.
#include <algorithm>

#include <rosin/activation.hpp>
#include <rosin/conv.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "onnx/convert.hpp"
#include "onnx/windows.hpp"

namespace rosin::onnx {
namespace {

Array with_bias(const NodeCall& call, const Array& y, size_t input) {
  return call.has(input) ? y + along(call[input], y.rank() - 2, y.rank()) : y;
}

std::vector<int64_t> kernel_sizes(const NodeCall& call, const Array& x, const Array& w) {
  if (x.rank() != w.rank() || x.rank() < 3 || x.rank() > 5) {
    call.refuse("images and kernels must have one to three axes beside channels and batch",
                to_string(x.shape()) + " and " + to_string(w.shape()));
  }
  std::vector<int64_t> sizes = sizes_of(w);
  sizes.resize(sizes.size() - 2);
  return sizes;
}

Array convolved(const NodeCall& call, const Array& x, const Array& w) {
  const Windows windows = windows_of(call, x, kernel_sizes(call, x, w));
  return crosscor(x, w,
                  {.stride = extents(windows.stride),
                   .pad = windows.pads(),
                   .dilation = extents(windows.dilation),
                   .groups = call.integer("group", 1)});
}

/// What is left out is 0.
Array less_zero(const NodeCall& call, size_t input, size_t zero, int dim) {
  const Array x = as(call[input], Int32);
  if (!call.has(zero)) return x;
  const Array z = as(call[zero], Int32);
  return x - (z.count() > 1 ? along(z, dim, x.rank()) : reshape(z, Shape()));
}

}  // namespace

Arrays conv_value(const NodeCall& call) { return {with_bias(call, convolved(call, call[0], call[1]), 2)}; }

/// Pads are chosen so that the sizes asked for come out; else sizes follow from the pads.
Arrays conv_transpose_value(const NodeCall& call) {
  const Array &x = call[0], &w = call[1];
  const std::vector<int64_t> size = kernel_sizes(call, x, w);
  const size_t dims = size.size();
  Windows windows = windows_of(call, x, size);
  std::vector<int64_t> more = spatial_list(call, "output_padding", dims, 0);
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  std::vector<int64_t> wanted = reversed(call.integers("output_shape"));
  if (wanted.size() > dims) wanted.resize(dims);  // with channels and batch, as some write it
  for (size_t d = 0; d < dims && (same || !wanted.empty()); ++d) {
    const int64_t in = x.size(static_cast<int>(d));
    const int64_t target = d < wanted.size() ? wanted[d] : in * windows.stride[d];
    const int64_t all = windows.stride[d] * (in - 1) + more[d] + windows.reach(d) - target;
    const int64_t half = std::max<int64_t>(all, 0) / 2, rest = std::max<int64_t>(all, 0) - half;
    windows.low[d] = automatic == "SAME_UPPER" ? half : rest;
    windows.high[d] = automatic == "SAME_UPPER" ? rest : half;
    more[d] += std::max<int64_t>(-all, 0);
  }
  // What is added at the end may exceed what rosin's op takes: less is cut off there instead.
  for (size_t d = 0; d < dims; ++d) {
    const int64_t cut = std::min(more[d], windows.high[d]);
    windows.high[d] -= cut;
    more[d] -= cut;
  }
  Array y = crosscor_transpose(x, w,
                               {.stride = extents(windows.stride),
                                .pad = windows.pads(),
                                .dilation = extents(windows.dilation),
                                .groups = call.integer("group", 1)});
  for (size_t d = 0; d < dims; ++d) y = pad(y, static_cast<int>(d), 0, more[d]);
  return {with_bias(call, y, 2)};
}

/// Each channel's own kernel over what has come so far: x is (length, channels, batch), behind what is left of the
/// past.
Arrays causal_conv(const NodeCall& call) {
  const Array &x = call[0], &w = call[1];
  const int64_t before = w.size(0) - 1;
  if (x.rank() != 3 || w.rank() != 3) call.refuse("the input and kernels have three axes", to_string(x.shape()));
  const Array all = call.has(3) ? concat({call[3], x}, 0) : pad(x, 0, before, 0);
  Array y = with_bias(call, crosscor(all, w, {.groups = x.size(1)}), 2);
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish")
    y = as(swish(as(y, y.dtype() == Float64 ? Float64 : Float32)), y.dtype());
  else if (activation != "none") call.refuse("the activation must be silu, swish or none", activation);
  return {y, slice(all, 0, all.size(0) - before, all.size(0))};
}

/// Columns (places, window elements * channels, batch) added up where they stand in images.
Arrays columns_to_image(const NodeCall& call) {
  const std::vector<int64_t> size = reversed(call.integers_in(1)), window = reversed(call.integers_in(2));
  const Windows windows = windows_of(call, call[0], window);
  return {fold(call[0], extents(size), extents(window),
               {.stride = extents(windows.stride), .pad = windows.pads(), .dilation = extents(windows.dilation)})};
}

Arrays conv_integer(const NodeCall& call) {
  const Array x = less_zero(call, 0, 2, 0), w = less_zero(call, 1, 3, call[1].rank() - 1);
  return {as(convolved(call, x, w), Int32)};
}

/// In exact integers, then scaled, rounded to even and cut to the type of the result.
Arrays qlinear_conv(const NodeCall& call) {
  const Array x = less_zero(call, 0, 2, 0), w = less_zero(call, 3, 5, call[3].rank() - 1);
  Array y = convolved(call, x, w);
  if (call.has(8)) y = y + along(as(call[8], Int64), y.rank() - 2, y.rank());
  const auto scale = [&](size_t input) {
    const Array& s = call[input];
    return s.count() > 1 ? along(s, y.rank() - 2, y.rank()) : reshape(s, Shape());
  };
  const Array scaled = as(y, Float32) * (scale(1) * scale(4) / scale(6));
  return {as(round(scaled) + as(reshape(call[7], Shape()), Float32), call[7].dtype())};
}

}  // namespace rosin::onnx
