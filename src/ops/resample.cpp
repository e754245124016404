// Interpolation: each new element is a weighted sum of neighbours along one spatial dim after the other; see
// rosin/resample.hpp.
#include <rosin/resample.hpp>

#include <algorithm>
#include <cmath>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "ops/reduction.hpp"
#include "ops/weighed_taps.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

/// One dim: how many elements there are, how many come out, and input elements for each of those.
struct Resizing {
  int64_t in = 0, out = 0;
  double ratio = 1;
};

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Keys' kernel.
double cubic(double x, double a) {
  const double t = std::abs(x);
  if (t >= 2) return 0;
  return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : ((t - 5) * t + 8) * a * t - 4 * a;
}

WeighedTaps means(const Resizing& r) {
  WeighedTaps taps(r.in);
  for (int64_t i = 0; i < r.out; ++i) {
    const int64_t first = i * r.in / r.out, last = ((i + 1) * r.in + r.out - 1) / r.out;
    for (int64_t j = first; j < last; ++j) taps.add(j, 1.0 / static_cast<double>(last - first));
    taps.end_element();
  }
  return taps;
}

/// Kernels as wide as a new element, which add to 1 within the image.
WeighedTaps smoothed(const Resizing& r, bool is_cubic) {
  WeighedTaps taps(r.in);
  const double width = std::max(r.ratio, 1.0), support = (is_cubic ? 2 : 1) * width;
  for (int64_t i = 0; i < r.out; ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * r.ratio;
    const auto first = std::max<int64_t>(static_cast<int64_t>(middle - support + 0.5), 0);
    const auto last = std::min<int64_t>(static_cast<int64_t>(middle + support + 0.5), r.in);
    const auto weight = [&](int64_t j) {
      const double at = (static_cast<double>(j) + 0.5 - middle) / width;
      return is_cubic ? cubic(at, -0.5) : triangle(at);
    };
    double total = 0;
    for (int64_t j = first; j < last; ++j) total += weight(j);
    for (int64_t j = first; j < last; ++j) taps.add(j, weight(j) / total);
    taps.end_element();
  }
  return taps;
}

/// The two or four neighbours; elements outside are those at the border.
WeighedTaps neighbours_of(const Resizing& r, bool is_cubic, bool align_corners) {
  WeighedTaps taps(r.in);
  const double corners = r.out > 1 ? static_cast<double>(r.in - 1) / static_cast<double>(r.out - 1) : 0;
  for (int64_t i = 0; i < r.out; ++i) {
    const auto place = static_cast<double>(i);
    double at = align_corners ? place * corners : (place + 0.5) * r.ratio - 0.5;
    if (!is_cubic) at = std::max(at, 0.0);
    const int64_t first = static_cast<int64_t>(std::floor(at)) - (is_cubic ? 1 : 0);
    for (int64_t j = first; j < first + (is_cubic ? 4 : 2); ++j) {
      const double distance = static_cast<double>(j) - at;
      taps.add(j, is_cubic ? cubic(distance, -0.75) : triangle(distance));
    }
    taps.end_element();
  }
  return taps;
}

WeighedTaps taps_of(const Resizing& r, const InterpolateOptions& options) {
  const bool is_cubic = options.mode == Interpolation::cubic;
  if (options.mode == Interpolation::area) return means(r);
  return options.antialias ? smoothed(r, is_cubic) : neighbours_of(r, is_cubic, options.align_corners);
}

/// x with its dims made by `apply(x, dim, resizings)`, as many at once as change side by side.
template <class Apply> Array resized(const Array& x, const std::vector<Resizing>& dims, Apply apply) {
  const auto changes = [&](size_t d) { return dims[d].in != dims[d].out || dims[d].ratio != 1; };
  Array y = x;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<Resizing> side_by_side;
    const auto first = static_cast<int>(d);
    for (; d < dims.size() && changes(d); ++d) side_by_side.push_back(dims[d]);
    if (!side_by_side.empty()) y = apply(y, first, side_by_side);
  }
  return y;
}

TapsKey key_of(const std::vector<Resizing>& dims, const InterpolateOptions& options) {
  TapsKey key("interpolate");
  key.add(static_cast<int64_t>(options.mode)).add(int64_t{options.align_corners}).add(int64_t{options.antialias});
  for (const Resizing& r : dims) key.add(r.in).add(r.out).add(r.ratio);
  return key;
}

/// What `make` makes of each.
template <class Make> auto each_of(const std::vector<Resizing>& dims, Make make) {
  std::vector<decltype(make(dims[0]))> all;
  for (const Resizing& r : dims) all.push_back(make(r));
  return all;
}

/// `within`: the point of a new element that counts, 0 its beginning, 1/2 its middle.
std::vector<int64_t> nearest(const Resizing& r, double within) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < r.out; ++i) {
    const auto at = static_cast<int64_t>(std::floor((static_cast<double>(i) + within) * r.ratio));
    places.push_back(std::min(at, r.in - 1));
  }
  return places;
}

[[noreturn]] void refuse_option(std::string_view rule, const std::string& came, std::string_view cure) {
  refuse(ErrorKind::argument, "interpolate", rule, came, cure);
}

Resizing resizing_of(const Array& x, const InterpolateOptions& options, int d, int spatial) {
  const auto in = static_cast<double>(x.size(d));
  if (options.scale.empty()) {
    const int64_t out = extent_for("interpolate", "size", options.size, d, spatial, 0);
    if (out < 1 || x.size(d) < 1) refuse_option("sizes are at least 1", std::to_string(out), "leave no dim empty");
    require_resizable("interpolate", static_cast<double>(out));
    return {x.size(d), out, in / static_cast<double>(out)};
  }
  const double scale = options.scale[options.scale.size() == 1 ? 0 : static_cast<size_t>(d)];
  require_resizable("interpolate", in * scale);
  const auto out = static_cast<int64_t>(std::floor(in * scale));
  if (!(scale > 0) || out < 1) refuse_option("sizes are at least 1", std::to_string(scale), "use a larger scale");
  return {x.size(d), out, 1 / scale};
}

void check_options(const InterpolateOptions& options, int spatial) {
  if (options.size.list().empty() == options.scale.empty()) {
    refuse_option("either size or scale is given", options.scale.empty() ? "none" : "both", "write {.size = {8, 8}}");
  }
  if (options.scale.size() > 1 && options.scale.size() != static_cast<size_t>(spatial)) {
    refuse_option("scale has one number or one for each spatial dim", std::to_string(options.scale.size()),
                  "give one for each");
  }
  const bool smooth = options.mode == Interpolation::linear || options.mode == Interpolation::cubic;
  if ((options.align_corners || options.antialias) && !smooth) {
    refuse_option("align_corners and antialias are of linear and cubic", "another mode", "leave them out");
  }
  if (options.align_corners && options.antialias) {
    refuse_option("one of align_corners and antialias", "both", "leave one out");
  }
}

}  // namespace

Array interpolate(const Array& x, const InterpolateOptions& options) {
  const int spatial = spatial_dims("interpolate", x);
  check_options(options, spatial);
  std::vector<Resizing> dims;
  for (int d = 0; d < spatial; ++d) dims.push_back(resizing_of(x, options, d, spatial));
  const bool exact = options.mode == Interpolation::nearest_exact;
  if (exact || options.mode == Interpolation::nearest) {
    return resized(x, dims, [&](const Array& y, int dim, const std::vector<Resizing>& some) {
      return picked(y, dim, key_of(some, options),
                    [&] { return each_of(some, [&](const Resizing& r) { return nearest(r, exact ? 0.5 : 0); }); });
    });
  }
  return resized(as_float(x), dims, [&](const Array& y, int dim, const std::vector<Resizing>& some) {
    return weighed(y, dim, key_of(some, options),
                   [&] { return each_of(some, [&](const Resizing& r) { return taps_of(r, options); }); });
  });
}

}  // namespace rosin
