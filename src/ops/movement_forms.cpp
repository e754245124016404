// Movements composed of the ops of movement.cpp: flatten, transpose, stack, repeat, split and their like.
#include <rosin/movement.hpp>

#include <vector>

#include <rosin/free_list.hpp>

#include "base/sizes.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

// A place for a new dim: [0, rank], negative ones count from the end of the result.
int new_dim(std::string_view op, int dim, const Shape& shape) {
  const int at = dim < 0 ? dim + shape.rank() + 1 : dim;
  if (at >= 0 && at <= shape.rank()) return at;
  refuse(ErrorKind::shape, op, "a new dim must stand in [0, " + std::to_string(shape.rank()) + "]",
         "dim " + std::to_string(dim) + " for shape " + to_string(shape), "use -1 for a new last dim");
}

// Fold of x at dim with its size taken `times` times, beside (repeat) or after (tile) each other.
Array multiplied(std::string_view op, const Array& x, int64_t times, int dim, bool each) {
  const int at = checked_dim(op, dim, x.shape());
  if (times < 0) {
    refuse(ErrorKind::argument, op, "the number of times cannot be negative", std::to_string(times),
           "use 0 for nothing");
  }
  if (times == 1) return x;
  const Fold fold = fold_at(x.shape(), at);
  const Shape result = with_size(x.shape(), at, product_of_sizes(op, {fold.size, times}));
  const Shape before = each ? Shape{fold.inner, 1, fold.size, fold.outer} : Shape{fold.inner, fold.size, 1, fold.outer};
  const Shape after = with_size(before, each ? 1 : 2, times);
  return reshape(expand(reshape(x, before), after), result);
}

// x, with further last dims of size 1 where `times` has more.
Array with_rank_of(const Array& x, std::span<const int64_t> times) {
  const Shape shape = x.shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  if (sizes.size() < times.size()) sizes.resize(times.size(), 1);
  return reshape(x, sizes);
}

// The dims that are named, as a bit for each.
unsigned named(std::string_view op, std::span<const int> dims, const Shape& shape) {
  unsigned mask = 0;
  for (const int dim : dims) mask |= 1u << checked_dim(op, dim, shape);
  return mask;
}

const bool functions_named[] = {name_function(flatten, "flatten"), name_function(transpose, "transpose"),
                                name_function(squeeze, "squeeze")};

}  // namespace

Array flatten(const Array& x) {
  const Shape shape = x.shape();
  if (shape.rank() == 0) return reshape(x, {1, 1});
  const int64_t last = shape[-1];
  int64_t rest = 1;
  for (int d = 0; d + 1 < shape.rank(); ++d) rest *= shape[d];
  return reshape(x, {rest, last});
}

Array transpose(const Array& x) {
  const int rank = x.rank();
  if (rank < 2) return rank == 0 ? x : reshape(x, {1, x.count()});
  int order[Shape::max_rank] = {1, 0, 2, 3, 4, 5, 6, 7};
  return permute(x, std::span<const int>(order, static_cast<size_t>(rank)));
}

Array flip(const Array& x, int dim) {
  const int64_t size = x.size(checked_dim("flip", dim, x.shape()));
  return size < 2 ? x : slice(x, dim, size - 1, to_end, -1);
}

Array flip(const Array& x, std::span<const int> dims) {
  const unsigned mask = named("flip", dims, x.shape());
  Array result = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (mask >> d & 1) result = flip(result, d);
  }
  return result;
}

Array squeeze(const Array& x) {
  std::vector<int64_t> sizes;
  for (const int64_t size : x.shape()) {
    if (size != 1) sizes.push_back(size);
  }
  return reshape(x, sizes);
}

Array squeeze(const Array& x, int dim) {
  const int at = checked_dim("squeeze", dim, x.shape());
  if (x.size(at) != 1) {
    refuse(ErrorKind::shape, "squeeze", "the dim must have size 1",
           "dim " + std::to_string(at) + " of shape " + to_string(x.shape()), "use select or reshape");
  }
  return reshape(x, with_dims(x.shape(), at, 1, {}));
}

Array squeeze(const Array& x, std::span<const int> dims) {
  const unsigned mask = named("squeeze", dims, x.shape());
  Array result = x;
  for (int d = x.rank() - 1; d >= 0; --d) {
    if (mask >> d & 1) result = squeeze(result, d);
  }
  return result;
}

Array unsqueeze(const Array& x, int dim) {
  const int at = new_dim("unsqueeze", dim, x.shape());
  return reshape(x, with_dims(x.shape(), at, 0, {1}));
}

namespace {

/// What has this index in the dim, which has size 1 then.
Array one_slice(const Array& x, int dim, int64_t at) {
  const int64_t size = x.size(dim);
  if (at < -size || at >= size) {
    refuse(ErrorKind::argument, "select",
           "the index must lie in dim " + std::to_string(dim) + " of " + std::to_string(size) + " elements",
           std::to_string(at), "indices count from 0, negative ones from the end");
  }
  const int64_t first = at < 0 ? at + size : at;
  return slice(x, dim, first, first + 1);
}

}  // namespace

Array Array::indexed(std::span<const Slice> ranges) const { return index(*this, ranges); }

Array index(const Array& x, std::span<const Slice> ranges) {
  if (ranges.size() > static_cast<size_t>(x.rank())) {
    refuse(ErrorKind::argument, "index", "there cannot be more ranges than dims",
           std::to_string(ranges.size()) + " for shape " + to_string(x.shape()), "drop ranges or reshape");
  }
  // All dims are cut before some go: a reshape between two slices would read all that the first one leaves.
  Array result = x;
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < ranges.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (ranges[d].single) {
      result = one_slice(result, dim, ranges[d].start);
    } else {
      result = slice(result, dim, ranges[d].start, ranges[d].stop, ranges[d].step);
      sizes.push_back(result.size(dim));
    }
  }
  if (sizes.size() == ranges.size()) return result;
  for (int d = static_cast<int>(ranges.size()); d < x.rank(); ++d) sizes.push_back(x.size(d));
  return reshape(result, sizes);
}

Array select(const Array& x, int dim, int64_t at) {
  const int which = checked_dim("select", dim, x.shape());
  return squeeze(one_slice(x, which, at), which);
}

Array row(const Array& x, int64_t i) {
  if (x.rank() != 2)
    refuse(ErrorKind::shape, "row", "it takes a matrix", to_string(x.shape()), "use select(x, dim, i)");
  return select(x, 0, i);
}

Array column(const Array& x, int64_t j) {
  if (x.rank() != 2) {
    refuse(ErrorKind::shape, "column", "it takes a matrix", to_string(x.shape()), "use select(x, dim, j)");
  }
  return select(x, 1, j);
}

Array pad(const Array& x, std::span<const std::pair<int64_t, int64_t>> widths, const Array& value) {
  if (widths.size() > static_cast<size_t>(x.rank())) {
    refuse(ErrorKind::argument, "pad", "there cannot be more widths than dims",
           std::to_string(widths.size()) + " for shape " + to_string(x.shape()),
           "drop widths or add dims with reshape");
  }
  Array result = x;
  int dim = 0;
  for (const auto& [low, high] : widths) result = pad(result, dim++, low, high, value);
  return result;
}

Array stack(std::span<const Array> arrays, int dim) {
  if (arrays.empty()) {
    refuse(ErrorKind::argument, "stack", "there must be an array to join", "none", "check the list before the call");
  }
  const int at = new_dim("stack", dim, arrays[0].shape());
  std::vector<Array, detail::FreeListAllocator<Array>> layers;
  layers.reserve(arrays.size());
  for (const Array& x : arrays) {
    if (!(x.shape() == arrays[0].shape())) {
      refuse(ErrorKind::shape, "stack", "all shapes must be equal",
             to_string(arrays[0].shape()) + " and " + to_string(x.shape()), "use concat for unequal sizes");
    }
    layers.push_back(unsqueeze(x, at));
  }
  return concat(layers, at);
}

Array repeat(const Array& x, int64_t times, int dim) { return multiplied("repeat", x, times, dim, true); }

Array tile(const Array& x, int64_t times, int dim) { return multiplied("tile", x, times, dim, false); }

Array repeat(const Array& x, std::span<const int64_t> times) {
  Array result = with_rank_of(x, times);
  for (size_t d = 0; d < times.size(); ++d) result = repeat(result, times[d], static_cast<int>(d));
  return result;
}

Array tile(const Array& x, std::span<const int64_t> times) {
  Array result = with_rank_of(x, times);
  for (size_t d = 0; d < times.size(); ++d) result = tile(result, times[d], static_cast<int>(d));
  return result;
}

std::vector<Array> split(const Array& x, std::span<const int64_t> sizes, int dim) {
  const int at = checked_dim("split", dim, x.shape());
  int64_t total = 0;
  for (const int64_t size : sizes) total = sum_of_sizes("split", {total, size});
  if (total != x.size(at)) {
    refuse(ErrorKind::argument, "split", "the sizes must add up to " + std::to_string(x.size(at)),
           "a total of " + std::to_string(total), "use slice for a part");
  }
  std::vector<Array> pieces;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    pieces.push_back(slice(x, at, start, start + size));
    start += size;
  }
  return pieces;
}

std::vector<Array> chunk(const Array& x, int64_t parts, int dim) {
  const int at = checked_dim("chunk", dim, x.shape());
  if (parts < 1) {
    refuse(ErrorKind::argument, "chunk", "there must be at least one part", std::to_string(parts),
           "use split for sizes");
  }
  const int64_t size = x.size(at);
  const int64_t step = size > 0 ? (size - 1) / parts + 1 : 1;
  std::vector<Array> pieces;
  for (int64_t start = 0; start < size; start += step) {
    pieces.push_back(slice(x, at, start, start + step < size ? start + step : size));
  }
  return pieces;
}

}  // namespace rosin
