// Images at the points of a grid; see rosin/resample.hpp. Each point is a weighed sum of the elements at the corners of
// the cell that it lies in.
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "graph/context.hpp"
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

/// Where the points lie along a dim, in elements, within the image where the border says so.
Array places_along(const Array& grid, int64_t size, const GridSampleOptions& options) {
  const auto n = static_cast<double>(size);
  const Array at = options.align_corners ? (grid + 1) * ((n - 1) / 2) : ((grid + 1) * n - 1) * 0.5;
  if (options.border == GridBorder::zeros) return at;
  if (options.border == GridBorder::border) return clamp(at, 0, n - 1);
  const Array inside = options.align_corners ? mirrored(at, 0, n - 1) : mirrored(at, -0.5, n - 0.5);
  return clamp(inside, 0, n - 1);
}

/// Points along one dim: the element before each, and how far behind it each lies.
struct Cell {
  Array first, beyond;
};

void check_grid(const Array& x, const Array& grid, int spatial) {
  if (grid.rank() == x.rank() && grid.size(0) == spatial && grid.size(grid.rank() - 1) == x.size(spatial + 1)) return;
  refuse(ErrorKind::shape, "grid_sample", "the grid is (d, sizes..., batch) for x (d spatial dims, channels, batch)",
         to_string(grid.shape()) + " and " + to_string(x.shape()), "make it with affine_grid");
}

/// Elements of x (all places, channels, batch) at whole points; 0 outside.
Array elements_at(const Array& x, const std::vector<Array>& at, const Shape& sizes, const Shape& result) {
  Array place = zeros_like(at[0]), inside;
  int64_t stride = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    const auto last = static_cast<double>(sizes[static_cast<int>(d)] - 1);
    const Array within = logical_and(ge(at[d], 0), le(at[d], last));
    inside = d == 0 ? within : logical_and(inside, within);
    place = place + clamp(at[d], 0, last) * static_cast<double>(stride);
    stride *= sizes[static_cast<int>(d)];
  }
  const Array points = where(inside, place, 0);  // NaN is outside
  return where(inside, take_along(x, expand(cast(points, Int32), result), 0), 0);
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
  std::vector<Array> rows;
  for (int i = 0; i < d; ++i) {
    std::vector<int64_t> shape(static_cast<size_t>(d), 1);
    shape[static_cast<size_t>(i)] = sizes[static_cast<size_t>(i)];
    const Array along = reshape(coordinates(sizes[static_cast<size_t>(i)], align_corners, theta.dtype()), shape);
    rows.push_back(reshape(expand(along, Shape(sizes)), {1, -1}));
  }
  rows.push_back(ones_like(rows[0]));
  std::vector<int64_t> shape = {d};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.push_back(theta.size(2));
  return reshape(matmul(theta, concat(rows, 0)), shape);
}

Array grid_sample(const Array& x, const Array& grid, const GridSampleOptions& options) {
  const int spatial = spatial_dims("grid_sample", x);
  check_grid(x, grid, spatial);
  const DeviceScope scope(*x.node());
  const int64_t batch = x.size(spatial + 1), channels = x.size(spatial);
  const Array flat = reshape(x, {-1, channels, batch}), points = reshape(grid, {spatial, -1, 1, batch});
  const Shape result{points.size(1), channels, batch};
  std::vector<Cell> cells;
  for (int d = 0; d < spatial; ++d) {
    const Array at = places_along(select(points, 0, d), x.size(d), options);
    const Array first = options.nearest ? round(at) : floor(at);
    cells.push_back({first, at - first});
  }
  Array sum;
  for (int corner = 0; corner < (options.nearest ? 1 : 1 << spatial); ++corner) {
    std::vector<Array> at;
    Array weight;
    for (int d = 0; d < spatial; ++d) {
      const Cell& cell = cells[static_cast<size_t>(d)];
      const bool far = corner >> d & 1;
      at.push_back(far ? cell.first + 1 : cell.first);
      const Array share = far ? cell.beyond : 1 - cell.beyond;
      weight = d == 0 ? share : weight * share;
    }
    const Array value = elements_at(flat, at, x.shape(), result);
    const Array part = options.nearest ? value : value * weight;
    sum = corner == 0 ? part : sum + part;
  }
  const Shape shape = grid.shape();
  std::vector<int64_t> sizes(shape.begin() + 1, shape.end() - 1);
  sizes.push_back(channels);
  sizes.push_back(batch);
  return reshape(sum, sizes);
}

}  // namespace rosin
