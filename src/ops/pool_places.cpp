// Pooling by places: back to images, and by windows of several sizes. Made of gathers and scatters.
#include <rosin/pool.hpp>

#include <algorithm>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/refuse_type.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

/// Windows along one dim: window o has the elements from first(o) to last(o).
struct UnevenWindows {
  int64_t in, out;
  int64_t first(int64_t o) const { return o * in / out; }
  int64_t last(int64_t o) const { return ((o + 1) * in - 1) / out; }
  int64_t largest() const {
    int64_t size = 1;
    for (int64_t o = 0; o < out; ++o) size = std::max(size, last(o) - first(o) + 1);
    return size;
  }
  /// (largest, out): the elements of each window, the last one again and again where it has fewer.
  Array elements() const {
    std::vector<int64_t> places;
    const int64_t size = largest();
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t k = 0; k < size; ++k) places.push_back(std::min(first(o) + k, last(o)));
    }
    return table(Array(places, {size, out}));
  }
};

/// (elements, windows): the places in the image of each window's elements, dim 0 fastest.
Array places_of(std::span<const UnevenWindows> dims) {
  Array places = reshape(zeros({1}, Int64), {1, 1});
  int64_t stride = 1;
  for (const UnevenWindows& windows : dims) {
    const Array here = windows.elements() * stride;
    const Array sums =
        reshape(places, {places.size(0), 1, places.size(1), 1}) + reshape(here, {1, here.size(0), 1, here.size(1)});
    places = reshape(sums, {places.size(0) * here.size(0), places.size(1) * here.size(1)});
    stride *= windows.in;
  }
  return places;
}

}  // namespace

Array max_unpool(const Array& y, const Array& indices, const Extents& size) {
  if (y.is_nothing() || indices.is_nothing()) {
    refuse(ErrorKind::argument, "max_unpool", "it takes arrays", "nothing", "pass those of maxpool_with_indices");
  }
  const int spatial = spatial_dims("max_unpool", y);
  if (indices.shape() != y.shape()) {
    refuse(ErrorKind::shape, "max_unpool", "there is an index for each element",
           to_string(indices.shape()) + " for " + to_string(y.shape()), "pass those of maxpool_with_indices");
  }
  const DeviceScope scope(*y.node());
  Shape image = y.shape();
  for (int d = 0; d < spatial; ++d) {
    image = with_size(image, d, extent_for("max_unpool", "size", size, d, spatial, y.size(d)));
  }
  const int64_t planes = y.size(-1) * y.size(-2), plane = planes == 0 ? 0 : image.count() / planes;
  const Array columns = reshape(cast(indices, Int64), {y.count() / std::max<int64_t>(planes, 1), planes});
  const Array inside = logical_and(ge(columns, 0), lt(columns, plane));
  const Array begin = reshape(arange(int64_t{0}, planes, 1, ArrayOptions(Int64)) * plane, {1, planes});
  const Array places = where(inside, columns + begin, image.count());  // which is no place
  const Array none = zeros({image.count()}, y.dtype());
  return reshape(scatter(none, reshape(places, {-1}), reshape(y, {-1}), 0), image);
}

MaxPooled adaptive_maxpool_with_indices(const Array& x, const Extents& out) {
  constexpr std::string_view name = "adaptive_maxpool_with_indices";
  if (x.is_nothing()) refuse(ErrorKind::argument, name, "x is an array", "nothing", "pass images");
  require_real(name, x);
  const int spatial = spatial_dims(name, x);
  const DeviceScope scope(*x.node());
  std::vector<UnevenWindows> dims;
  Shape pooled = x.shape();
  int64_t plane = 1;
  for (int d = 0; d < spatial; ++d) {
    const int64_t wanted = extent_for(name, "out", out, d, spatial, 0);
    if (wanted < 1 || x.size(d) < 1) {
      refuse(ErrorKind::shape, name, "sizes are at least 1", std::to_string(wanted) + " of " + to_string(x.shape()),
             "check the sizes");
    }
    dims.push_back({x.size(d), wanted});
    pooled = with_size(pooled, d, wanted);
    plane *= x.size(d);
  }
  const Array places = places_of(dims);  // (elements, windows)
  const Array columns = gather(reshape(x, {plane, x.size(-2) * x.size(-1)}), places, 0);
  const Array best = argmax(columns, 0);  // (1, windows, planes)
  const Array begin = reshape(arange(places.size(1)) * places.size(0), {1, -1, 1});
  const Array indices = gather(reshape(places, {-1}), best + begin, 0);
  return {reshape(take_along(columns, best, 0), pooled), reshape(indices, pooled)};
}

}  // namespace rosin
