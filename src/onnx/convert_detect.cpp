// Conversions of what detectors sample between the elements of images. Read first: convert.hpp.
#include <algorithm>
#include <cmath>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "onnx/convert.hpp"
#include "onnx/windows.hpp"

namespace rosin::onnx {
namespace {

/// Where the elements of a window stand for each window along a dim, as (places along `dim`, window elements) of
/// rank 4.
Array window_places(const Windows& windows, size_t dim, int64_t places, DType type) {
  std::vector<double> at;
  const int64_t inner = dim == 0 ? 1 : windows.size[0], all = windows.size[0] * windows.size[1];
  for (int64_t k = 0; k < all; ++k) {
    const int64_t element = k / inner % windows.size[dim];
    for (int64_t i = 0; i < places; ++i) {
      at.push_back(static_cast<double>(i * windows.stride[dim] + element * windows.dilation[dim] - windows.low[dim]));
    }
  }
  const Array list = worked_out(at, {places, 1, all, 1}, type);
  return dim == 0 ? list : permute(list, {1, 0, 2, 3});
}

/// Coordinates among `size` elements as those of grids, -1 to 1 from edge to edge.
Array grid_coordinate(const Array& at, int64_t size) { return (at * 2.0 + 1.0) / static_cast<double>(size) - 1.0; }

}  // namespace

/// A convolution each of whose elements is read at a place of its own, with linear interpolation. x is (width, height,
/// channels, batch); offsets are (width, height, 2 * window elements * groups of offsets, batch), rows before columns.
Arrays deformed_conv(const NodeCall& call) {
  const Array &x = call[0], &w = call[1], &offset = call[2];
  if (x.rank() != 4 || w.rank() != 4 || offset.rank() != 4) call.refuse("images have two axes", to_string(x.shape()));
  const int64_t groups = call.integer("group", 1), parts = call.integer("offset_group", 1);
  const Windows windows = windows_of(call, x, {w.size(0), w.size(1)});
  const int64_t width = offset.size(0), height = offset.size(1), window = w.size(0) * w.size(1), c = x.size(2);
  if (groups < 1 || parts < 1 || c % parts != 0 || w.size(2) * groups != c || w.size(3) % groups != 0) {
    call.refuse("groups must divide the channels", to_string(x.shape()) + " and " + to_string(w.shape()));
  }
  const Array moved = reshape(offset, {width, height, 2, window, -1});
  const Array at_x = select(moved, 2, 1) + window_places(windows, 0, width, x.dtype());
  const Array at_y = select(moved, 2, 0) + window_places(windows, 1, height, x.dtype());
  const Array grid = stack({grid_coordinate(at_x, x.size(0)), grid_coordinate(at_y, x.size(1))}, 0);
  Array read = rosin::grid_sample(reshape(x, {x.size(0), x.size(1), c / parts, -1}),
                                  reshape(grid, {2, width, height * window, -1}));
  if (call.has(4)) read = read * reshape(call[4], {width, height * window, 1, -1});
  const Array columns = reshape(read, {width * height, window * w.size(2), groups, x.size(3)});
  const Array y = matmul(columns, reshape(w, {window * w.size(2), w.size(3) / groups, groups, 1}));
  const Array image = reshape(y, {width, height, w.size(3), x.size(3)});
  return {call.has(3) ? image + along(call[3], 2, 4) : image};
}

namespace {

/// Along one dim of an image: two neighbours and the share of the second one; outside everything counts as 0.
struct Neighbour {
  int64_t low = 0, high = 0;
  double share = 0;
  bool outside = false;
};

Neighbour neighbour_at(double at, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (!(at >= -1 && at <= last + 1)) return {0, 0, 0, true};
  const double inside = std::clamp(at, 0.0, last), low = std::floor(inside);
  return {static_cast<int64_t>(low), std::min(static_cast<int64_t>(low) + 1, size - 1), inside - low, false};
}

/// One dim of a region: its first coordinate, the size of its bins and how many points of each are read.
struct RegionDim {
  double start, bin;
  int64_t points;

  Neighbour at(int64_t place, int64_t point, int64_t size) const {
    const double inside = (static_cast<double>(point) + 0.5) / static_cast<double>(points);
    return neighbour_at(start + bin * (static_cast<double>(place) + inside), size);
  }
};

struct RoiAlign {
  std::vector<RegionDim> columns, rows;  // of each region
  std::vector<int64_t> images;           // that they lie in
  int64_t width, height;                 // of the result
  int64_t most_points = 1;
};

RegionDim region_dim(const NodeCall& call, double start, double end, int64_t bins) {
  const bool half_pixel = call.text("coordinate_transformation_mode",
                                    call.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const double scale = call.real("spatial_scale", 1), shift = half_pixel ? 0.5 : 0;
  const double size = half_pixel ? (end - start) * scale : std::max((end - start) * scale, 1.0);
  const double bin = size / static_cast<double>(bins);
  const int64_t stated = call.integer("sampling_ratio", 0);
  const double points = stated > 0 ? static_cast<double>(stated) : std::ceil(bin);
  if (!(points <= 64)) call.refuse("at most 64 points of a bin are read along each axis", std::to_string(points));
  return {start * scale - shift, bin, std::max(static_cast<int64_t>(points), int64_t{1})};
}

RoiAlign regions_of(const NodeCall& call) {
  RoiAlign regions{{}, {}, call.integers_in(2), call.integer("output_width", 1), call.integer("output_height", 1)};
  const std::vector<double> corners = as(call[1], Float64).to_vector<double>();
  check_extent(call, regions.width);
  check_extent(call, regions.height);
  if (corners.size() != 4 * regions.images.size() || regions.width < 1 || regions.height < 1) {
    call.refuse("regions have four corners and an image each", to_string(call[1].shape()));
  }
  const double bins = static_cast<double>(regions.width * regions.height) * static_cast<double>(regions.images.size());
  if (bins > 1 << 26) call.refuse("regions have at most 2^26 bins", std::to_string(bins));
  for (size_t i = 0; i < regions.images.size(); ++i) {
    if (regions.images[i] < 0 || regions.images[i] >= call[0].size(3)) {
      call.refuse("a region must lie in an image of the batch", std::to_string(regions.images[i]));
    }
    regions.columns.push_back(region_dim(call, corners[4 * i], corners[4 * i + 2], regions.width));
    regions.rows.push_back(region_dim(call, corners[4 * i + 1], corners[4 * i + 3], regions.height));
    regions.most_points = std::max(regions.most_points, regions.columns[i].points * regions.rows[i].points);
  }
  return regions;
}

/// One of the four neighbours of one point of each bin of all regions.
struct Tap {
  std::vector<int64_t> places;
  std::vector<double> weights;
};

/// Regions of fewer points have their last one again, which counts for means no more.
Tap tap_of(const RoiAlign& regions, const Array& x, int64_t point, bool right, bool below, bool is_mean) {
  Tap tap;
  const int64_t w = x.size(0), h = x.size(1);
  for (size_t r = 0; r < regions.images.size(); ++r) {
    const RegionDim &columns = regions.columns[r], &rows = regions.rows[r];
    const int64_t count = columns.points * rows.points, own = std::min(point, count - 1);
    const double scale = !is_mean ? 1 : point < count ? 1 / static_cast<double>(count) : 0;
    for (int64_t j = 0; j < regions.height; ++j) {
      const Neighbour y = rows.at(j, own / columns.points, h);
      for (int64_t i = 0; i < regions.width; ++i) {
        const Neighbour at = columns.at(i, own % columns.points, w);
        const double weight = (right ? at.share : 1 - at.share) * (below ? y.share : 1 - y.share);
        tap.places.push_back(((regions.images[r] * h) + (below ? y.high : y.low)) * w + (right ? at.high : at.low));
        tap.weights.push_back(at.outside || y.outside ? 0 : weight * scale);
      }
    }
  }
  return tap;
}

}  // namespace

/// Means, or maxima, of points in the bins of regions (4, count) of images. The regions are read when the model is
/// called. Source: ONNX, RoiAlign.
Arrays roi_align(const NodeCall& call) {
  const Array& x = call[0];
  if (x.rank() != 4 || x.count() == 0) call.refuse("images have two axes, and elements", to_string(x.shape()));
  const std::string mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") call.refuse("the mode must be avg or max", mode);
  const RoiAlign regions = regions_of(call);
  const auto count = static_cast<int64_t>(regions.images.size());
  const Array flat = reshape(permute(x, {2, 0, 1, 3}), {x.size(2), -1});  // (channels, all elements)
  Array y;
  for (int64_t k = 0; k < 4 * regions.most_points; ++k) {
    const Tap tap = tap_of(regions, x, k / 4, k % 2 != 0, k / 2 % 2 != 0, mode == "avg");
    const auto length = static_cast<int64_t>(tap.places.size());
    const Array part =
        gather(flat, worked_out(tap.places, {length}), 1) * unsqueeze(worked_out(tap.weights, {length}, x.dtype()), 0);
    y = y.is_nothing() ? part : mode == "avg" ? y + part : max(y, part);
  }
  return {permute(reshape(y, {x.size(2), regions.width, regions.height, count}), {1, 2, 0, 3})};
}

}  // namespace rosin::onnx
