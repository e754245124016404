// Movements made of slices and joins, and of tables: pads that take their elements from x, roll, set, meshgrid.
#include <rosin/movement.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/shapes.hpp"
#include "ops/weighed_taps.hpp"

namespace rosin {
namespace {

using Widths = std::pair<int64_t, int64_t>;

void check_border(const Array& x, int dim, int64_t count, PadMode mode) {
  const int64_t size = x.size(dim), most = mode == PadMode::reflect ? size - 1 : size;
  if (count >= 0 && (mode == PadMode::repeat ? size > 0 || count == 0 : count <= most)) return;
  refuse(ErrorKind::argument, "pad", "there is enough to take beyond the border",
         std::to_string(count) + " of dim " + std::to_string(dim) + " of " + to_string(x.shape()),
         "pad less, or with a number");
}

/// What stands before x along the dim, `count` elements. What stands behind is the same of the flipped array, flipped.
Array border(const Array& x, int dim, int64_t count, PadMode mode) {
  const int64_t size = x.size(dim);
  switch (mode) {
    case PadMode::reflect: return flip(slice(x, dim, 1, count + 1), dim);
    case PadMode::symmetric: return flip(slice(x, dim, 0, count), dim);
    case PadMode::circular: return slice(x, dim, size - count, size);
    case PadMode::repeat: break;
  }
  return expand(slice(x, dim, 0, 1), with_size(x.shape(), dim, count));
}

Array padded(const Array& x, int dim, const Widths& widths, PadMode mode) {
  std::vector<Array> parts;
  if (widths.first != 0) parts.push_back(border(x, dim, widths.first, mode));
  parts.push_back(x);
  if (widths.second != 0) parts.push_back(flip(border(flip(x, dim), dim, widths.second, mode), dim));
  return parts.size() == 1 ? x : concat(parts, dim);
}

/// Which element of a dim stands at each place from the low border on.
std::vector<int64_t> places_of(int64_t size, const Widths& widths, PadMode mode) {
  std::vector<int64_t> places;
  for (int64_t i = -widths.first; i < size + widths.second; ++i) {
    switch (mode) {
      case PadMode::reflect: places.push_back(i < 0 ? -i : i < size ? i : 2 * (size - 1) - i); break;
      case PadMode::symmetric: places.push_back(i < 0 ? -1 - i : i < size ? i : 2 * size - 1 - i); break;
      case PadMode::circular: places.push_back((i + size) % size); break;
      case PadMode::repeat: places.push_back(std::clamp<int64_t>(i, 0, size - 1)); break;
    }
  }
  return places;
}

/// Whether tables of places say what stands where: of numbers that are added up backwards, and of many lines, beside
/// which the tables do not count.
bool has_places(const Array& x, int dim, const Widths& widths) {
  constexpr int64_t many_lines = 64;
  const bool adds = is_float(x.dtype()) || is_complex(x.dtype());
  const int64_t places = x.size(dim) + widths.first + widths.second;
  return adds && (widths.first > 0 || widths.second > 0) && places * many_lines <= x.count();
}

/// Where a range begins, from the front of its dim, and how it goes on.
struct Start {
  int64_t at, step;
};
Start start_of(const Slice& range, int64_t size) {
  const int64_t step = range.single ? 1 : range.step;
  const int64_t from_front = range.start < 0 ? range.start + size : range.start;
  return {step < 0 ? std::min(from_front, size - 1) : std::max<int64_t>(from_front, 0), step};
}

/// Which elements of a dim a range has, and which of its `count` elements each of them is: vectors along that dim.
struct Inside {
  Array holds, place;
};
Inside inside(const Start& start, int64_t count, const Shape& shape, int dim) {
  std::vector<int64_t> along(static_cast<size_t>(shape.rank()), 1);
  along[static_cast<size_t>(dim)] = shape[dim];
  const Array distance = (reshape(arange(shape[dim]), along) - start.at) * (start.step < 0 ? -1 : 1);
  const int64_t stride = std::abs(start.step);
  const Array place = floor_divide(distance, stride);
  const Array holds = logical_and(ge(distance, 0), logical_and(eq(mod(distance, stride), 0), lt(place, count)));
  return {holds, reshape(where(holds, place, 0), {shape[dim]})};
}

/// x with `value`, as large as x but along the dim, from `start` on.
Array spliced(const Array& x, const Array& value, int dim, int64_t start) {
  const int64_t end = start + value.size(dim);
  std::vector<Array> parts;
  if (start > 0) parts.push_back(slice(x, dim, 0, start));
  parts.push_back(value);
  if (end < x.size(dim)) parts.push_back(slice(x, dim, end, x.size(dim)));
  return parts.size() == 1 ? value : concat(parts, dim);
}

/// Some neighbouring dims as one, and places there.
struct Places {
  int first, last;  // dims
  std::vector<int64_t> indices;
};

/// The places that the ranges take, where these are so few that a scatter writes them in less than a copy of x, and in
/// x itself if nothing else holds it.
std::optional<Places> few_places(const Array& x, std::span<const Slice> ranges, const Shape& part) {
  constexpr int64_t few = 8, long_row = 16;
  Places places{x.rank(), -1, {0}};
  for (int d = 0; d < static_cast<int>(ranges.size()); ++d) {
    if (part[d] == x.size(d) && start_of(ranges[static_cast<size_t>(d)], x.size(d)).step == 1) continue;
    places.first = std::min(places.first, d);
    places.last = d;
  }
  if (places.last < 0) return std::nullopt;
  const Fold before = fold_at(x.shape(), places.first);
  int64_t all = 1, taken = 1;
  for (int d = places.first; d <= places.last; ++d) all *= x.size(d), taken *= part[d];
  const bool rows = before.inner >= long_row || x.count() == before.inner * all;
  if (taken * few > all || !rows) return std::nullopt;
  int64_t scale = 1;
  for (int d = places.first; d <= places.last; scale *= x.size(d++)) {
    const Start start = start_of(ranges[static_cast<size_t>(d)], x.size(d));
    const std::vector<int64_t> inner = std::exchange(places.indices, {});
    for (int64_t i = 0; i < part[d]; ++i) {
      for (const int64_t place : inner) places.indices.push_back(place + (start.at + i * start.step) * scale);
    }
  }
  return places;
}

/// x with `value`, of the part's shape, at the places.
Array written(const Array& x, const Places& places, const Array& value) {
  std::vector<int64_t> sizes, taken;
  const auto count = static_cast<int64_t>(places.indices.size());
  int64_t all = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (d >= places.first && d <= places.last) all *= x.size(d);
    if (d >= places.first && d < places.last) continue;
    sizes.push_back(d == places.last ? all : x.size(d));
    taken.push_back(d == places.last ? count : x.size(d));
  }
  const Array at =
      in_scope(leaf_of<int64_t>({count}, [&](int64_t i) { return places.indices[static_cast<size_t>(i)]; }));
  return reshape(scatter(reshape(x, sizes), at, reshape(value, taken), places.first), x.shape());
}

/// x with `value`, of the part's shape, in the ranges of its first dims.
Array replaced(const Array& x, std::span<const Slice> ranges, const Array& value) {
  if (ranges.empty()) return value;
  const int dim = static_cast<int>(ranges.size()) - 1;
  const Start start = start_of(ranges.back(), x.size(dim));
  const std::span<const Slice> others = ranges.first(ranges.size() - 1);
  if (start.step == 1) {
    const Array part = slice(x, dim, start.at, start.at + value.size(dim));
    return spliced(x, replaced(part, others, value), dim, start.at);
  }
  const auto [holds, place] = inside(start, value.size(dim), x.shape(), dim);
  return where(holds, replaced(x, others, gather(value, place, dim)), x);
}

}  // namespace

Array pad(const Array& x, std::span<const std::pair<int64_t, int64_t>> widths, PadMode mode) {
  if (widths.size() > static_cast<size_t>(x.rank())) {
    refuse(ErrorKind::argument, "pad", "there cannot be more widths than dims",
           std::to_string(widths.size()) + " for shape " + to_string(x.shape()), "drop some");
  }
  for (size_t d = 0; d < widths.size(); ++d) {
    check_border(x, static_cast<int>(d), widths[d].first, mode);
    check_border(x, static_cast<int>(d), widths[d].second, mode);
  }
  Array result = x;
  for (size_t d = 0; d < widths.size();) {
    const size_t first = d;
    TapsKey key("pad");
    key.add(static_cast<int64_t>(mode));
    for (; d < widths.size() && has_places(x, static_cast<int>(d), widths[d]); ++d) {
      key.add(x.size(static_cast<int>(d))).add(widths[d].first).add(widths[d].second);
    }
    if (d == first) {
      result = padded(result, static_cast<int>(d), widths[d], mode), ++d;
      continue;
    }
    result = picked(result, static_cast<int>(first), key, [&] {
      std::vector<std::vector<int64_t>> places;  // of neighbouring dims
      for (size_t i = first; i < d; ++i) places.push_back(places_of(x.size(static_cast<int>(i)), widths[i], mode));
      return places;
    });
  }
  return result;
}

Array roll(const Array& x, int64_t shift, int dim) {
  if (is_dim_of_one(dim, x.shape())) return x;
  const int at = checked_dim("roll", dim, x.shape());
  const int64_t size = x.size(at);
  const int64_t last = size == 0 ? 0 : (shift % size + size) % size;
  if (last == 0) return x;
  return concat({slice(x, at, size - last, size), slice(x, at, 0, size - last)}, at);
}

Array set(const Array& x, std::span<const Slice> ranges, const Array& value) {
  const DeviceScope scope(*x.node());
  const Array part = index(x, ranges);  // its shape; and it checks the ranges
  if (!(broadcast_shapes("set", value.shape(), part.shape()) == part.shape())) {
    refuse(ErrorKind::shape, "set", "a value fits into the part that it replaces",
           to_string(value.shape()) + " for " + to_string(part.shape()), "reshape it, or take a larger part");
  }
  if (part.count() == 0) return x;
  Array spread = expand(cast(value, x.dtype()), part.shape());
  for (size_t d = 0; d < ranges.size(); ++d) {
    if (ranges[d].single) spread = unsqueeze(spread, static_cast<int>(d));
  }
  if (const std::optional<Places> places = few_places(x, ranges, spread.shape())) return written(x, *places, spread);
  return replaced(x, ranges, spread);
}

std::vector<Array> meshgrid(std::span<const Array> vectors) {
  std::vector<int64_t> sizes;
  for (const Array& v : vectors) {
    if (v.rank() != 1) refuse(ErrorKind::shape, "meshgrid", "it takes vectors", to_string(v.shape()), "reshape them");
    sizes.push_back(v.size(0));
  }
  std::vector<Array> grid;
  for (size_t d = 0; d < vectors.size(); ++d) {
    std::vector<int64_t> along(vectors.size(), 1);
    along[d] = sizes[d];
    grid.push_back(expand(reshape(vectors[d], along), Shape(std::span<const int64_t>(sizes))));
  }
  return grid;
}

}  // namespace rosin
