// Interpolation, one spatial dim after the other: a weighted sum of the neighbours of each new element, or where they
// are a good part of all elements a product with the matrix of the weights; see rosin/resample.hpp.
#include <rosin/resample.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "ops/reduction.hpp"
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

/// Weights (out, in) of elements, column-major.
class Weights {
 public:
  explicit Weights(const Resizing& r) : r_(r), values_(static_cast<size_t>(r.in * r.out)) {}

  void add(int64_t to, int64_t from, double weight) { values_[static_cast<size_t>(from * r_.out + to)] += weight; }
  Array array() const { return Array(values_, {r_.out, r_.in}); }

 private:
  Resizing r_;
  std::vector<double> values_;
};

Weights means(const Resizing& r) {
  Weights weights(r);
  for (int64_t i = 0; i < r.out; ++i) {
    const int64_t first = i * r.in / r.out, last = ((i + 1) * r.in + r.out - 1) / r.out;
    for (int64_t j = first; j < last; ++j) weights.add(i, j, 1.0 / static_cast<double>(last - first));
  }
  return weights;
}

/// Kernels as wide as a new element, which add to 1 within the image.
Weights smoothed(const Resizing& r, bool is_cubic) {
  Weights weights(r);
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
    for (int64_t j = first; j < last; ++j) weights.add(i, j, weight(j) / total);
  }
  return weights;
}

/// One neighbour of each new element, and what it counts.
struct Neighbours {
  std::vector<int32_t> places;
  std::vector<double> weights;
};

/// The two or four neighbours; elements outside are those at the border.
std::vector<Neighbours> neighbours_of(const Resizing& r, bool is_cubic, bool align_corners) {
  std::vector<Neighbours> all(is_cubic ? 4 : 2);
  const double corners = r.out > 1 ? static_cast<double>(r.in - 1) / static_cast<double>(r.out - 1) : 0;
  for (int64_t i = 0; i < r.out; ++i) {
    const auto place = static_cast<double>(i);
    double at = align_corners ? place * corners : (place + 0.5) * r.ratio - 0.5;
    if (!is_cubic) at = std::max(at, 0.0);
    int64_t j = static_cast<int64_t>(std::floor(at)) - (is_cubic ? 1 : 0);
    for (Neighbours& one : all) {
      const double distance = static_cast<double>(j) - at;
      one.places.push_back(static_cast<int32_t>(std::clamp<int64_t>(j++, 0, r.in - 1)));
      one.weights.push_back(is_cubic ? cubic(distance, -0.75) : triangle(distance));
    }
  }
  return all;
}

Weights weights_of(const std::vector<Neighbours>& all, const Resizing& r) {
  Weights weights(r);
  for (const Neighbours& one : all) {
    for (size_t i = 0; i < one.places.size(); ++i) weights.add(static_cast<int64_t>(i), one.places[i], one.weights[i]);
  }
  return weights;
}

/// y with dim d replaced by sums of neighbours.
Array mixed(const std::vector<Neighbours>& all, const Array& x, int d) {
  const auto out = static_cast<int64_t>(all[0].places.size());
  const Shape along = with_size(Shape(std::vector<int64_t>(static_cast<size_t>(x.rank()), 1)), d, out);
  Array sum;
  for (const Neighbours& one : all) {
    const Array weights = table(cast(Array(one.weights, along), x.dtype()));
    const Array part = gather(x, table(Array(one.places, {out})), d) * weights;
    sum = &one == &all[0] ? part : sum + part;
  }
  return sum;
}

/// y with dim d replaced by products with the rows of w (out, in).
Array multiplied(const Array& w, const Array& x, int d) {
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[static_cast<size_t>(d)]);
  const Array lines = permute(x, order);
  const Array product = matmul(w, reshape(lines, {lines.size(0), -1}));
  return permute(reshape(product, with_size(lines.shape(), 0, w.size(0))), order);
}

/// y with dim d at another size. Measured on the CPU: a neighbour takes as long as 16 elements of a product.
Array resized(const Array& x, const Resizing& r, const InterpolateOptions& options, int d) {
  constexpr int64_t elements_per_neighbour = 16;
  const bool is_cubic = options.mode == Interpolation::cubic;
  const auto by_matrix = [&](const Weights& weights) {
    return multiplied(table(cast(weights.array(), x.dtype())), x, d);
  };
  if (options.mode == Interpolation::area) return by_matrix(means(r));
  if (options.antialias) return by_matrix(smoothed(r, is_cubic));
  const std::vector<Neighbours> neighbours = neighbours_of(r, is_cubic, options.align_corners);
  if (r.in > elements_per_neighbour * static_cast<int64_t>(neighbours.size())) return mixed(neighbours, x, d);
  return by_matrix(weights_of(neighbours, r));
}

/// `within`: the point of a new element that counts, 0 its beginning, 1/2 its middle.
Array nearest(const Array& x, const Resizing& r, int d, double within) {
  std::vector<int32_t> places;
  for (int64_t i = 0; i < r.out; ++i) {
    const auto at = static_cast<int64_t>(std::floor((static_cast<double>(i) + within) * r.ratio));
    places.push_back(static_cast<int32_t>(std::min(at, r.in - 1)));
  }
  const int64_t times = r.in > 0 && r.out % r.in == 0 ? r.out / r.in : 0;
  bool repeats = times > 0;
  for (int64_t i = 0; repeats && i < r.out; ++i) repeats = places[static_cast<size_t>(i)] == i / times;
  if (repeats) return repeat(x, times, d);
  const DeviceScope scope(*x.node());
  return gather(x, table(Array(places, {r.out})), d);
}

[[noreturn]] void refuse_option(std::string_view rule, const std::string& came, std::string_view cure) {
  refuse(ErrorKind::argument, "interpolate", rule, came, cure);
}

Resizing resizing_of(const Array& x, const InterpolateOptions& options, int d, int spatial) {
  const auto in = static_cast<double>(x.size(d));
  if (options.scale.empty()) {
    const int64_t out = extent_for("interpolate", "size", options.size, d, spatial, 0);
    if (out < 1 || x.size(d) < 1) refuse_option("sizes are at least 1", std::to_string(out), "leave no dim empty");
    return {x.size(d), out, in / static_cast<double>(out)};
  }
  const double scale = options.scale[options.scale.size() == 1 ? 0 : static_cast<size_t>(d)];
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
  const bool exact = options.mode == Interpolation::nearest_exact;
  const bool whole = exact || options.mode == Interpolation::nearest;
  Array y = whole ? x : wide(is_float(x.dtype()) ? x : cast(x, Float32));
  for (int d = 0; d < spatial; ++d) {
    const Resizing r = resizing_of(x, options, d, spatial);
    if (r.in == r.out && r.ratio == 1) continue;
    if (whole) {
      y = nearest(y, r, d, exact ? 0.5 : 0);
      continue;
    }
    const DeviceScope scope(*x.node());
    y = resized(y, r, options, d);
  }
  return whole ? y : narrow(y, x);
}

}  // namespace rosin
