// Conversions of ops that read images between their elements. Each dim by itself: an element of the result is a sum of
// few elements of the input (taps), whose places and weights are worked out beforehand. Read first: convert.hpp.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "onnx/convert.hpp"
#include "ops/weighed_taps.hpp"

namespace rosin::onnx {
namespace {

/// For one dim: tap k of element i of the result.
struct Taps {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;  // empty: all 1
  std::vector<double> outside;               // 1 where the coordinate is outside; empty: nowhere
};

struct DimResize {
  int64_t in, out;
  double scale;
  double roi_start = 0, roi_end = 1;
};

double coordinate(const std::string& mode, const DimResize& d, int64_t i) {
  const double x = static_cast<double>(i), in = static_cast<double>(d.in), out = static_cast<double>(d.out);
  if (mode == "align_corners") {
    const double length = d.scale * in;  // as the format's own cases have it, also where it is not whole
    return d.out == 1 ? 0 : x * (in - 1) / (length - 1);
  }
  if (mode == "asymmetric") return x / d.scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / d.scale;
  if (mode == "pytorch_half_pixel" && d.out == 1) return 0;
  if (mode == "half_pixel_symmetric") {
    const double centre = in / 2, adjusted = centre * (1 - out / (d.scale * in));
    return adjusted + (x + 0.5) / d.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    const double from = d.roi_start * (in - 1), to = d.roi_end * (in - 1);
    return d.out == 1 ? (from + to) / 2 : from + x * (to - from) / (out - 1);
  }
  return (x + 0.5) / d.scale - 0.5;
}

double nearest(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

int64_t most_elements(const NodeCall& call, double size) {
  if (size >= 0 && size <= 1 << 24) return static_cast<int64_t>(size);
  call.refuse("a dim is resized to at most 2^24 elements", std::to_string(size));
}

/// Keys' kernel, or a line's.
double kernel(double x, bool is_cubic, double a) {
  const double t = std::abs(x);
  if (!is_cubic) return std::max(0.0, 1 - t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/// How an element of the result is found: from the nearest one, or from `count` neighbours, the first of them `first`
/// from the one at or below the coordinate; where smaller images are smoothed, the kernel is so much wider.
struct Neighbours {
  bool is_nearest, is_cubic, excludes, smooths;
  double width = 1, first = 0, cubic_coefficient = 0;
  int64_t count = 1;
};

Neighbours neighbours_of(const NodeCall& call, const std::string& mode, const DimResize& d) {
  Neighbours n{mode == "nearest", mode == "cubic", call.integer("exclude_outside", 0) != 0, false};
  n.cubic_coefficient = call.real("cubic_coeff_a", -0.75);
  if (n.is_nearest) return n;
  n.smooths = call.integer("antialias", 0) != 0 && d.scale < 1;
  if (n.smooths) n.width = 1 / d.scale;
  n.first = std::floor((n.is_cubic ? -2 : -1) * n.width) + 1;
  n.count = most_elements(call, 2 - 2 * n.first);
  return n;
}

std::vector<double> weights_at(const Neighbours& n, double fraction, double base, double last) {
  std::vector<double> weights;
  double total = 0;
  for (int64_t k = 0; k < n.count; ++k) {
    const double at = n.first + static_cast<double>(k);
    const bool outside = base + at < 0 || base + at > last;
    weights.push_back(n.excludes && outside ? 0 : kernel((at - fraction) / n.width, n.is_cubic, n.cubic_coefficient));
    total += weights.back();
  }
  for (double& weight : weights) weight = (n.excludes || n.smooths) && total != 0 ? weight / total : weight;
  return weights;
}

Taps taps_of(const NodeCall& call, const std::string& mode, const std::string& coordinates, const DimResize& d) {
  const auto last = static_cast<double>(d.in - 1);
  const std::string rounding = call.text("nearest_mode", call.opset() < 11 ? "floor" : "round_prefer_floor");
  const Neighbours n = neighbours_of(call, mode, d);
  Taps taps;
  taps.places.resize(static_cast<size_t>(n.count));
  if (!n.is_nearest) taps.weights.resize(static_cast<size_t>(n.count));
  for (int64_t i = 0; i < d.out; ++i) {
    const double x = coordinate(coordinates, d, i);
    if (coordinates == "tf_crop_and_resize") taps.outside.push_back(x < 0 || x > last ? 1 : 0);
    const double base = n.is_nearest ? nearest(rounding, x) : std::floor(x);
    const std::vector<double> weights = weights_at(n, x - base, base, last);
    for (size_t k = 0; k < taps.places.size(); ++k) {
      const double at = base + n.first + static_cast<double>(k);
      taps.places[k].push_back(static_cast<int64_t>(std::clamp(at, 0.0, last)));
      if (!n.is_nearest) taps.weights[k].push_back(weights[k]);
    }
  }
  return taps;
}

WeighedTaps weighed_taps(const Taps& taps, int64_t in) {
  WeighedTaps made(in);
  for (size_t i = 0; i < taps.places[0].size(); ++i) {
    for (size_t k = 0; k < taps.places.size(); ++k) made.add(taps.places[k][i], taps.weights[k][i]);
    made.end_element();
  }
  return made;
}

/// Dims that stand side by side are resized together. Integers are computed in Float32 and cut toward 0.
Array applied(const Array& x, const std::map<int, Taps>& taps) {
  Array y = is_float(x.dtype()) ? x : cast(x, Float32);
  bool takes = true;  // whether all elements are taken as they are
  for (const auto& [dim, one] : taps) takes = takes && one.weights.empty();
  if (takes) y = x;
  for (auto first = taps.begin(); first != taps.end();) {
    std::vector<std::vector<int64_t>> places;
    std::vector<WeighedTaps> weights;
    auto next = first;
    for (int dim = first->first; next != taps.end() && next->first == dim; ++next, ++dim) {
      if (takes) places.push_back(next->second.places[0]);
      else weights.push_back(weighed_taps(next->second, x.size(dim)));
    }
    y = takes ? picked(y, first->first, places) : weighed(y, first->first, weights);
    first = next;
  }
  return y.dtype() == x.dtype() ? y : cast(y, x.dtype());
}

/// What is asked for, by axis of the file.
struct Request {
  std::vector<double> scales, roi;
  std::vector<int64_t> sizes, axes;
};

/// Sizes that keep the proportions: the smallest, or largest, factor holds for all.
void keep_aspect(const NodeCall& call, const Array& x, Request& request) {
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || request.sizes.empty()) return;
  double factor = 0;
  for (size_t i = 0; i < request.sizes.size(); ++i) {
    const auto in = static_cast<double>(x.size(call.dim(request.axes[i], x.rank())));
    const double own = static_cast<double>(request.sizes[i]) / in;
    factor = i == 0 ? own : policy == "not_larger" ? std::min(factor, own) : std::max(factor, own);
  }
  for (size_t i = 0; i < request.sizes.size(); ++i) {
    const auto in = static_cast<double>(x.size(call.dim(request.axes[i], x.rank())));
    request.sizes[i] = most_elements(call, std::floor(in * factor + 0.5));
    request.scales.push_back(factor);
  }
}

Array resized(const NodeCall& call, const Request& request, const std::string& mode, const std::string& coordinates) {
  const Array& x = call[0];
  std::map<int, Taps> taps;
  Array outside;
  const size_t count = request.axes.size();
  for (size_t i = 0; i < count; ++i) {
    const int dim = call.dim(request.axes[i], x.rank());
    DimResize d{x.size(dim), 0, 1};
    if (d.in == 0) call.refuse("what is resized must have elements", to_string(x.shape()));
    const auto in = static_cast<double>(d.in);
    d.out = request.sizes.empty() ? most_elements(call, std::floor(in * request.scales[i])) : request.sizes[i];
    most_elements(call, static_cast<double>(d.out));
    d.scale = request.scales.empty() ? static_cast<double>(d.out) / in : request.scales[i];
    if (request.roi.size() == 2 * count) d.roi_start = request.roi[i], d.roi_end = request.roi[i + count];
    if (d.in == d.out && d.scale == 1 && coordinates != "tf_crop_and_resize") continue;
    const Taps& along_dim = taps[dim] = taps_of(call, mode, coordinates, d);
    if (along_dim.outside.empty()) continue;
    const Array here = gt(along(worked_out(along_dim.outside, {d.out}, Float32), dim, x.rank()), 0);
    outside = outside.is_nothing() ? here : logical_or(outside, here);
  }
  const Array y = applied(x, taps);
  if (outside.is_nothing()) return y;
  return where(outside, as(call.real("extrapolation_value", 0), y.dtype()), y);
}

std::vector<double> reals_in(const NodeCall& call, size_t input) {
  return call.has(input) ? call[input].to_vector<double>() : std::vector<double>();
}

void check_request(const NodeCall& call, const Request& request) {
  const size_t count = request.axes.size();
  const size_t given = request.sizes.empty() ? request.scales.size() : request.sizes.size();
  if (given != count) call.refuse("there must be a scale or size for each axis", std::to_string(given));
}

/// What an interpolation in floating point gives for integers is rounded toward 0.
std::string resize_mode(const NodeCall& call) {
  const std::string mode = call.text("mode", "nearest");
  if (mode == "bilinear") return "linear";
  if (mode != "nearest" && mode != "linear" && mode != "cubic") call.refuse("the mode must be known", mode);
  return mode;
}

}  // namespace

Arrays resize(const NodeCall& call) {
  Request request;
  const bool old = call.opset() < 11;
  request.scales = reals_in(call, old ? 1 : 2);
  if (!old && call.has(3)) request.sizes = call.integers_in(3);
  if (!request.sizes.empty()) request.scales.clear();
  if (!old) request.roi = reals_in(call, 1);
  request.axes = call.integers("axes");
  if (request.axes.empty()) {
    request.axes.resize(static_cast<size_t>(call[0].rank()));
    std::iota(request.axes.begin(), request.axes.end(), 0);
  }
  check_request(call, request);
  keep_aspect(call, call[0], request);
  return {resized(call, request, resize_mode(call),
                  old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel"))};
}

Arrays upsample(const NodeCall& call) {
  Request request;
  request.scales = call.opset() >= 9 ? reals_in(call, 1) : call.reals("scales");
  if (call.opset() < 7) request.scales = {1, 1, call.real("height_scale", 1), call.real("width_scale", 1)};
  request.axes.resize(static_cast<size_t>(call[0].rank()));
  std::iota(request.axes.begin(), request.axes.end(), 0);
  check_request(call, request);
  return {resized(call, request, resize_mode(call), "asymmetric")};
}

/// x is (spatial..., channels, batch), the grid (dims, sizes..., batch).
Arrays grid_sample(const NodeCall& call) {
  const std::string mode = call.text("mode", "linear"), padding = call.text("padding_mode", "zeros");
  const Interpolation by = mode == "nearest"                      ? Interpolation::nearest
                           : mode == "bicubic" || mode == "cubic" ? Interpolation::cubic
                                                                  : Interpolation::linear;
  const GridSampleOptions options{.mode = by,
                                  .border = padding == "border"       ? GridBorder::border
                                            : padding == "reflection" ? GridBorder::reflection
                                                                      : GridBorder::zeros,
                                  .align_corners = call.integer("align_corners", 0) != 0};
  return {rosin::grid_sample(call[0], call[1], options)};
}

Arrays affine_grid_value(const NodeCall& call) {
  std::vector<int64_t> size = reversed(call.integers_in(1));
  if (size.size() < 4) call.refuse("sizes are those of images", std::to_string(size.size()) + " of them");
  size.resize(size.size() - 2);
  return {affine_grid(permute(call[0], {1, 0, 2}), Extents(std::span<const int64_t>(size)),
                      call.integer("align_corners", 0) != 0)};
}

}  // namespace rosin::onnx
