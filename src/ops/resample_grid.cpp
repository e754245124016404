// Images at the points of a grid; see rosin/resample.hpp. Each point is a weighed sum of the elements around it.
#include <limits>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "graph/context.hpp"
#include "ops/reduction.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

/// Of an image's dim of `size`: what stands at -1 ... 1 of its elements.
Array coordinates(int64_t size, bool align_corners, DType type) {
  const auto n = static_cast<double>(size);
  const Array i = cast(arange(size), type);
  if (!align_corners) return (i * 2 + 1) / n - 1;
  return size > 1 ? i * (2 / (n - 1)) - 1 : i;
}

/// x mirrored at low and high as often as it takes.
Array mirrored(const Array& x, double low, double high) {
  if (high <= low) return zeros_like(x);
  const double span = high - low;
  const Array from = abs(x - low), whole = floor(from / span), rest = from - whole * span;
  return where(eq(mod(whole, 2.0), 0), rest + low, high - rest);
}

/// Where the points lie along a dim, in elements.
Array places_along(const Array& grid, int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  return options.align_corners ? (grid + 1) * ((n - 1) / 2) : ((grid + 1) * n - 1) * 0.5;
}

/// The same within the image, where the border says so.
Array bordered(const Array& at, int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  if (options.border == GridBorder::zeros) return at;
  if (options.border == GridBorder::border) return clamp(at, 0, n - 1);
  const Array inside = options.align_corners ? mirrored(at, 0, n - 1) : mirrored(at, -0.5, n - 0.5);
  return clamp(inside, 0, n - 1);
}

/// Along one dim an element that points are made of, and how much of it.
struct Tap {
  Array at, weight;  // no weight: 1
};

/// Keys' kernel with a = -3/4, of the four elements around points that lie t behind the second of them.
std::vector<Array> cubic_weights(const Array& t) {
  constexpr double a = -0.75;
  const auto near = [](const Array& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [](const Array& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

std::vector<Tap> taps_along(const Array& grid, int64_t size, const GridSampleOptions& options) {
  const Array at = places_along(grid, size, options);
  if (options.mode == Interpolation::nearest) return {{round(bordered(at, size, options)), Array()}};
  if (options.mode == Interpolation::linear) {
    const Array inside = bordered(at, size, options), first = floor(inside), beyond = inside - first;
    return {{first, 1 - beyond}, {first + 1, beyond}};
  }
  const Array first = floor(at);
  const std::vector<Array> weights = cubic_weights(at - first);
  std::vector<Tap> taps;
  for (int k = 0; k < 4; ++k)
    taps.push_back({bordered(first + (k - 1), size, options), weights[static_cast<size_t>(k)]});
  return taps;
}

void check_grid(const Array& x, const Array& grid, int spatial, Interpolation mode) {
  if (mode == Interpolation::area || mode == Interpolation::nearest_exact) {
    refuse(ErrorKind::argument, "grid_sample", "the mode is nearest, linear or cubic", "another one", "use linear");
  }
  for (const Array* one : {&x, &grid}) {
    if (!is_complex(one->dtype())) continue;
    refuse(ErrorKind::dtype, "grid_sample", "images and points are real", to_string(one->dtype()),
           "sample the two parts, real(z) and imag(z)");
  }
  if (grid.rank() == x.rank() && grid.size(0) == spatial && grid.size(grid.rank() - 1) == x.size(spatial + 1)) return;
  refuse(ErrorKind::shape, "grid_sample", "the grid is (d, sizes..., batch) for x (d spatial dims, channels, batch)",
         to_string(grid.shape()) + " and " + to_string(x.shape()), "make it with affine_grid");
}

/// Elements of x (channels, all places of all images) at whole points of the images, in which row `first` of the places
/// begins: (channels, points); 0 outside. Places are integers: a float does not hold every one of a large image.
Array elements_at(const Array& x, const std::vector<Array>& at, const Shape& sizes, const Array& first) {
  Array place = first, inside;
  int64_t stride = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    const auto last = static_cast<double>(sizes[static_cast<int>(d)] - 1);
    const Array within = logical_and(ge(at[d], 0), le(at[d], last));
    inside = d == 0 ? within : logical_and(inside, within);
    place = place + cast(clamp(at[d], 0, last), first.dtype()) * stride;  // NaN, which is outside, becomes 0
    stride *= sizes[static_cast<int>(d)];
  }
  return where(reshape(inside, {1, -1}), gather(x, reshape(place, {-1}), 1), 0);
}

}  // namespace

Array affine_grid(const Array& theta, const Extents& size, bool align_corners) {
  const auto sizes = size.list();
  const int d = static_cast<int>(sizes.size());
  if (d < 1 || d > 3 || theta.rank() != 3 || theta.size(0) != d || theta.size(1) != d + 1) {
    refuse(ErrorKind::shape, "affine_grid", "theta is (d, d + 1, batch) for d sizes",
           to_string(theta.shape()) + " for " + std::to_string(d), "give a size for each dim");
  }
  const DeviceScope scope(*theta.node());
  const Array map = wide(theta);
  std::vector<Array> rows;
  for (int i = 0; i < d; ++i) {
    std::vector<int64_t> shape(static_cast<size_t>(d), 1);
    shape[static_cast<size_t>(i)] = sizes[static_cast<size_t>(i)];
    const Array along = reshape(coordinates(sizes[static_cast<size_t>(i)], align_corners, map.dtype()), shape);
    rows.push_back(reshape(expand(along, Shape(sizes)), {1, -1}));
  }
  rows.push_back(ones_like(rows[0]));
  std::vector<int64_t> shape = {d};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.push_back(theta.size(2));
  return narrow(reshape(matmul(map, concat(rows, 0)), shape), theta);
}

Array grid_sample(const Array& x, const Array& grid, const GridSampleOptions& options) {
  const int spatial = spatial_dims("grid_sample", x);
  check_grid(x, grid, spatial, options.mode);
  const DeviceScope scope(*x.node());
  const int64_t batch = x.size(spatial + 1), channels = x.size(spatial);
  // Channels first: those of a point stand side by side, and are moved together.
  const Array flat = reshape(x, {-1, channels, batch});
  const Array columns = reshape(permute(flat, {1, 0, 2}), {channels, flat.size(0) * batch});
  const Array points = reshape(wide(grid), {spatial, -1, batch});
  const DType integer = columns.size(1) > std::numeric_limits<int32_t>::max() ? Int64 : Int32;
  const Array first = reshape(cast(arange(batch) * flat.size(0), integer), {1, batch});
  std::vector<std::vector<Tap>> taps;
  int64_t count = 1;
  for (int d = 0; d < spatial; ++d) {
    taps.push_back(taps_along(select(points, 0, d), x.size(d), options));
    count *= static_cast<int64_t>(taps.back().size());
  }
  Array sum;
  for (int64_t number = 0; number < count; ++number) {
    std::vector<Array> at;
    Array weight;
    int64_t rest = number;
    for (const std::vector<Tap>& along : taps) {
      const Tap& tap = along[static_cast<size_t>(rest) % along.size()];
      rest /= static_cast<int64_t>(along.size());
      at.push_back(tap.at);
      weight = weight.is_nothing() ? tap.weight : weight * tap.weight;
    }
    const Array value = wide(elements_at(columns, at, x.shape(), first));
    const Array part = weight.is_nothing() ? value : value * reshape(weight, {1, -1});
    sum = number == 0 ? part : sum + part;
  }
  const Shape shape = grid.shape();
  std::vector<int64_t> sizes(shape.begin() + 1, shape.end() - 1);
  sizes.push_back(channels);
  sizes.push_back(batch);
  return reshape(permute(reshape(narrow(sum, x), {channels, -1, batch}), {1, 0, 2}), sizes);
}

}  // namespace rosin
