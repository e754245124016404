// Conversions of ops that read images between their elements. Each dim by itself: an element of the result is a sum of
// few elements of the input (taps), whose places and weights are worked out beforehand. Read first: convert.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"

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

/// Weights of four neighbours for a fraction, by Keys' kernel.
std::vector<double> cubic_weights(double t, double a) {
  const auto near = [&](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [&](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

Taps taps_of(const NodeCall& call, const std::string& mode, const std::string& coordinates, const DimResize& d) {
  const int64_t last = d.in - 1;
  const bool crop = coordinates == "tf_crop_and_resize", excludes = call.integer("exclude_outside", 0) != 0;
  const int count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  const std::string rounding = call.text("nearest_mode", call.opset() < 11 ? "floor" : "round_prefer_floor");
  const double a = call.real("cubic_coeff_a", -0.75);
  Taps taps;
  taps.places.resize(static_cast<size_t>(count));
  if (count > 1) taps.weights.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < d.out; ++i) {
    const double x = coordinate(coordinates, d, i);
    if (crop) taps.outside.push_back(x < 0 || x > static_cast<double>(last) ? 1 : 0);
    const double base = count == 1 ? nearest(rounding, x) : std::floor(x) - (count == 4 ? 1 : 0);
    const double fraction = x - std::floor(x);
    std::vector<double> weights = count == 4   ? cubic_weights(fraction, a)
                                  : count == 2 ? std::vector<double>{1 - fraction, fraction}
                                               : std::vector<double>{1};
    double total = 0;
    for (int k = 0; k < count; ++k) {
      const double at = base + k;
      const auto tap = static_cast<size_t>(k);
      if (excludes && (at < 0 || at > static_cast<double>(last))) weights[tap] = 0;
      total += weights[tap];
      taps.places[tap].push_back(static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(last))));
    }
    for (int k = 0; k < count && count > 1; ++k) {
      const auto tap = static_cast<size_t>(k);
      taps.weights[tap].push_back(excludes && total != 0 ? weights[tap] / total : weights[tap]);
    }
  }
  return taps;
}

Array applied(const Array& x, int dim, const Taps& taps) {
  Array y;
  for (size_t k = 0; k < taps.places.size(); ++k) {
    const auto count = static_cast<int64_t>(taps.places[k].size());
    Array part = gather(x, worked_out(taps.places[k], {count}), dim);
    if (!taps.weights.empty()) part = part * along(worked_out(taps.weights[k], {count}, x.dtype()), dim, x.rank());
    y = y.is_nothing() ? part : y + part;
  }
  return y;
}

/// What is asked for, by axis of the file.
struct Request {
  std::vector<double> scales, roi;
  std::vector<int64_t> sizes, axes;
};

int64_t most_elements(const NodeCall& call, double size) {
  if (size >= 0 && size <= 1 << 24) return static_cast<int64_t>(size);
  call.refuse("a dim is resized to at most 2^24 elements", std::to_string(size));
}

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
  Array y = x;
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
    const Taps taps = taps_of(call, mode, coordinates, d);
    y = applied(y, dim, taps);
    if (taps.outside.empty()) continue;
    const Array here = gt(along(worked_out(taps.outside, {d.out}, Float32), dim, x.rank()), 0);
    outside = outside.is_nothing() ? here : logical_or(outside, here);
  }
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
  if (call.integer("antialias", 0) != 0) call.refuse("a resize must not smooth", "antialias");
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

namespace {

/// Coordinates of one dim of an image, from -1 .. 1.
struct Sampling {
  bool corners;
  std::string padding;

  Array coordinate(const Array& g, int64_t size) const {
    const auto n = static_cast<double>(size);
    return corners ? (g + 1.0) * ((n - 1) / 2) : ((g + 1.0) * n - 1.0) * 0.5;
  }
  /// Where the coordinate is read: the border's, or mirrored; else it stays.
  Array placed(const Array& at, int64_t size) const {
    const auto n = static_cast<double>(size);
    if (padding == "border") return clamp(at, 0, n - 1);
    if (padding != "reflection") return at;
    const double low = corners ? 0 : -0.5, span = corners ? n - 1 : n;
    if (span == 0) return at * 0.0;
    const Array rest = mod(at - low, 2 * span);
    return clamp(where(gt(rest, span), 2 * span - rest, rest) + low, 0, n - 1);
  }
};

/// An element of each image at whole coordinates, 0 outside; `flat` is (channels, all elements), `base` the place where
/// each image begins.
Array picked(const Array& flat, const Array& x, const Array& y, const Array& base, int64_t w, int64_t h,
             const Sampling& how) {
  const Array at_x = how.placed(x, w), at_y = how.placed(y, h);
  const Array inside =
      logical_and(logical_and(ge(at_x, 0), le(at_x, w - 1)), logical_and(ge(at_y, 0), le(at_y, h - 1)));
  const Array place = as(round(clamp(at_x, 0, static_cast<double>(w - 1))), Int64) +
                      as(round(clamp(at_y, 0, static_cast<double>(h - 1))), Int64) * w + base;
  const Array value = gather(flat, place, 1);
  return where(unsqueeze(inside, 0), value, zeros_like(value));
}

std::vector<Array> cubic_arrays(const Array& t) {
  const double a = -0.75;
  const auto near = [&](const Array& x) { return ((a + 2) * x - (a + 3)) * x * x + 1.0; };
  const auto far = [&](const Array& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1.0 + t), near(t), near(1.0 - t), far(2.0 - t)};
}

}  // namespace

/// x is (width, height, channels, batch), the grid (2, width, height, batch).
Arrays grid_sample(const NodeCall& call) {
  const Array &x = call[0], &grid = call[1];
  if (x.rank() != 4 || grid.rank() != 4) call.refuse("images must have two axes", to_string(x.shape()));
  const int64_t w = x.size(0), h = x.size(1), c = x.size(2), n = x.size(3);
  const Sampling how{call.integer("align_corners", 0) != 0, call.text("padding_mode", "zeros")};
  const Array flat = reshape(permute(x, {2, 0, 1, 3}), {c, w * h * n});
  const Array base = along(as(arange(n) * (w * h), Int64), 2, 3);
  Array gx = how.coordinate(select(grid, 0, 0), w), gy = how.coordinate(select(grid, 0, 1), h);
  const std::string mode = call.text("mode", "bilinear");
  if (mode == "nearest") {
    gx = how.placed(gx, w), gy = how.placed(gy, h);
    return {permute(picked(flat, round(gx), round(gy), base, w, h, how), {1, 2, 0, 3})};
  }
  const bool cubic = mode == "bicubic" || mode == "cubic";
  if (!cubic) gx = how.placed(gx, w), gy = how.placed(gy, h);
  const Array left = floor(gx), top = floor(gy), tx = gx - left, ty = gy - top;
  const std::vector<Array> wx = cubic ? cubic_arrays(tx) : std::vector<Array>{1.0 - tx, tx};
  const std::vector<Array> wy = cubic ? cubic_arrays(ty) : std::vector<Array>{1.0 - ty, ty};
  const double first = cubic ? -1 : 0;
  Array y;
  for (size_t j = 0; j < wy.size(); ++j) {
    for (size_t i = 0; i < wx.size(); ++i) {
      const Array value = picked(flat, left + (first + static_cast<double>(i)), top + (first + static_cast<double>(j)),
                                 base, w, h, how);
      const Array part = value * unsqueeze(wx[i] * wy[j], 0);
      y = y.is_nothing() ? part : y + part;
    }
  }
  return {permute(y, {1, 2, 0, 3})};
}

}  // namespace rosin::onnx
