// Rows of what finds, sorts, gathers and scatters elements, and of what makes arrays of numbers. Read first: call.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

using Sizes = std::vector<int64_t>;

Sizes sizes_of(const Array& x) {
  const Shape shape = x.shape();
  return Sizes(shape.begin(), shape.end());
}

constexpr double infinity = std::numeric_limits<double>::infinity();

Array indices(Call& c, int at, const char* name = "index") {
  const Array x = c.array(at, name);
  if (x.dtype() == Bool) throw Refused("index: a mask");
  return x;
}

/// A 0-d array as a vector, for ops along a dim.
Array with_dim(const Array& x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

/// x, in the first elements of all dims but `dim`, at indices of those dims: torch.gather.
Array gathered(Call& c) {
  const Array x = with_dim(c.array(0)), at = with_dim(indices(c, 2));
  const int dim = c.dim(x, 1, "dim", 0);
  std::vector<Slice> ranges(static_cast<size_t>(x.rank()), slice());
  for (int d = 0; d < x.rank(); ++d) {
    if (d != dim) ranges[static_cast<size_t>(d)] = slice(0, at.size(d));
  }
  return reshape(take_along(index(x, ranges), at, dim), c.array(2, "index").shape());
}

Array taken_along(Call& c) {
  Array x = c.array(0), at = indices(c, 1, "indices");
  if (!c.has(2, "dim")) return take_along(reshape(x, {-1}), reshape(at, {-1}), 0);
  const int dim = c.dim(x, 2, "dim", 0);
  Sizes sizes(static_cast<size_t>(x.rank()), 0), places;
  for (int d = 0; d < x.rank(); ++d) sizes[static_cast<size_t>(d)] = std::max(x.size(d), at.size(d));
  places = sizes;
  sizes[static_cast<size_t>(dim)] = x.size(dim);
  places[static_cast<size_t>(dim)] = at.size(dim);
  return take_along(expand(x, Shape(std::span<const int64_t>(sizes))),
                    expand(at, Shape(std::span<const int64_t>(places))), dim);
}

Array index_selected(Call& c) {
  const Array x = with_dim(c.array(0)), y = gather(x, with_dim(indices(c, 2)), c.dim(x, 1, "dim", 0));
  return c.array(0).rank() == 0 ? reshape(y, Shape()) : y;
}

/// The places of elements of x seen as a vector: along `dim` those of `at`, along other dims the element's own.
Array vector_places(const Array& x, const Array& at, int dim) {
  Array places = zeros(at.shape(), Int64);
  int64_t stride = 1;
  for (int d = 0; d < x.rank(); ++d) {
    Sizes sizes(static_cast<size_t>(x.rank()), 1);
    sizes[static_cast<size_t>(d)] = at.size(d);
    const Array along = d == dim ? mod(cast(at, Int64) + x.size(d), x.size(d)) : reshape(arange(at.size(d)), sizes);
    places = places + stride * cast(along, Int64);
    stride *= x.size(d);
  }
  return places;
}

using Scatter = Array (*)(const Array&, const Array&, const Array&, int);
Array mean_with_target(const Array& x, const Array& at, const Array& updates, int dim) {
  return scatter_mean(x, at, updates, dim);
}

/// The scatter of a name of PyTorch's, and the element that does not count in it.
std::pair<Scatter, double> scatter_named(const std::string& name) {
  if (name == "add" || name == "sum") return {scatter_add, 0};
  if (name == "multiply" || name == "prod") return {scatter_mul, 1};
  if (name == "amax") return {scatter_max, -infinity};
  if (name == "amin") return {scatter_min, infinity};
  if (name == "mean") return {mean_with_target, 0};
  return {scatter, 0};
}

/// scatter(target, at, updates, dim) by the named way; without the targets that are written at, where those do not
/// count.
Array scattered(const Array& x, const Array& at, const Array& updates, int dim, const std::string& how,
                bool with_target) {
  const auto [f, neutral] = scatter_named(how);
  if (with_target) return f(x, at, updates, dim);
  if (how == "mean") return scatter_mean(x, at, updates, dim, false);
  const Array written = scatter_add(zeros(x.shape(), Int32), at, ones(updates.shape(), Int32), dim) > 0;
  return f(where(written, neutral, x), at, updates, dim);
}

/// torch.scatter and its kin: each element has an index of its own.
Array scattered_elements(Call& c, const std::string& how, bool with_target = true) {
  const Array x = with_dim(c.array(0)), at = with_dim(indices(c, 2));
  const int dim = c.dim(x, 1, "dim", 0);
  Array updates = with_dim(c.array(3, "src"));
  if (updates.count() == 1 && at.count() != 1)
    updates = expand(reshape(updates, Sizes(static_cast<size_t>(x.rank()), 1)), at.shape());
  std::vector<Slice> ranges;
  for (int d = 0; d < x.rank(); ++d) ranges.push_back(slice(0, at.size(d)));
  updates = cast(reshape(index(updates, ranges), {-1}), x.dtype());
  const Array places = reshape(vector_places(x, at, dim), {-1});
  return reshape(scattered(reshape(x, {-1}), places, updates, 0, how, with_target), c.array(0).shape());
}
Array scatter_reduced(Call& c) { return scattered_elements(c, c.text(4, "reduce"), c.flag(-1, "include_self", true)); }

/// torch.index_add and its kin: one index for each slice.
Array scattered_slices(Call& c, const std::string& how, const Array& source, bool with_target = true) {
  const Array x = with_dim(c.array(0)), at = with_dim(indices(c, 2));
  const int dim = c.dim(x, 1, "dim", 0);
  Array updates = with_dim(source);
  if (source.rank() == 0) {
    Sizes sizes = sizes_of(x);
    sizes[static_cast<size_t>(dim)] = at.count();
    updates = expand(reshape(updates, Sizes(static_cast<size_t>(x.rank()), 1)), Shape(std::span<const int64_t>(sizes)));
  }
  return reshape(scattered(x, at, cast(updates, x.dtype()), dim, how, with_target), c.array(0).shape());
}
Array index_reduced(Call& c) {
  return scattered_slices(c, c.text(4, "reduce"), c.array(3, "source"), c.flag(-1, "include_self", true));
}

/// PyTorch's first dims, which are the last here, as the first ones in its order.
Array indexed_first(const Array& x, size_t count) {
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(count); ++d) order.push_back(turned(d, x.rank()));
  for (int d = 0; d < x.rank() - static_cast<int>(count); ++d) order.push_back(d);
  return permute(x, order);
}
/// The first `count` dims as the last ones, in their order.
Array first_last(const Array& x, int count) {
  std::vector<int> order;
  for (int d = count; d < x.rank(); ++d) order.push_back(d);
  for (int d = 0; d < count; ++d) order.push_back(d);
  return permute(x, order);
}

/// Elements of x at indices of PyTorch's first dims are set, or added to.
Array index_put(Call& c) {
  const Array x = c.array(0);
  const Arrays each = c.list(1, "indices");
  Array places = zeros({}, Int64);
  for (const Array& one : each) {
    if (one.dtype() == Bool) throw Refused("index_put: a mask");
    places = places + cast(zeros_like(one), Int64);
  }
  const Array front = indexed_first(x, each.size());
  const int kept = x.rank() - static_cast<int>(each.size());
  Sizes wanted = sizes_of(x);
  wanted.resize(static_cast<size_t>(kept));
  for (const int64_t size : sizes_of(places)) wanted.push_back(size);
  const Array values = first_last(expand(c.array(2, "values"), Shape(std::span<const int64_t>(wanted))), kept);
  const bool adds = c.flag(3, "accumulate", false);
  const Array y = adds ? scatter_nd_add(front, each, values) : scatter_nd(front, each, values);
  std::vector<int> order(static_cast<size_t>(x.rank()));
  for (int d = 0; d < x.rank(); ++d) {
    order[static_cast<size_t>(d)] = d < kept ? d + static_cast<int>(each.size()) : turned(d, x.rank());
  }
  return permute(y, order);
}

/// PyTorch's places of what is not 0, a row each, out of places in the vector.
Array places_in_dims(const Array& x) {
  Array at = cast(nonzero(x != 0), Int64);
  Arrays columns;
  for (int d = 0; d < x.rank(); ++d) {
    columns.push_back(mod(at, x.size(d)));
    at = floor_divide(at, x.size(d));
  }
  if (columns.empty()) return zeros({0, at.count()}, Int64);
  std::ranges::reverse(columns);
  return stack(columns, 0);
}

Arrays sorted(Call& c) {
  const Array x = c.array(0);
  c.has(-1, "stable");
  const int dim = c.dim(x, 1, "dim", -1);
  const bool down = c.flag(2, "descending", false);
  return {sort(x, dim, down), argsort(x, dim, down)};
}
Arrays top(Call& c) {
  const Array x = c.array(0);
  const TopK best = topk(x, c.integer(1, "k", 1), c.dim(x, 2, "dim", -1), c.flag(3, "largest", true));
  c.has(4, "sorted");
  return {best.values, best.indices};
}

Array masked(Call& c) {
  Array x = c.array(0), mask = c.array(1, "mask");
  const Shape shape = (zeros_like(x) + cast(mask, x.dtype())).shape();
  return masked_select(expand(x, shape), expand(mask, shape));
}
Array masked_from(Call& c) {
  const Array both = zeros_like(c.array(0)) + cast(c.array(1, "mask"), c.array(0).dtype());
  const Array x = expand(c.array(0), both.shape()), mask = expand(c.array(1, "mask"), both.shape());
  const Array source = reshape(c.array(2, "source"), {-1});
  const Array at = max(cumsum(cast(reshape(mask, {-1}), Int32), 0) - 1, 0);
  return where(mask, reshape(gather(source, at, 0), x.shape()), x);
}

Arrays uniques(Call& c) {
  const Array x = c.array(0);
  c.has(-1, "sorted");
  const Unique all = c.has(-1, "dim") ? unique(x, c.dim(x, -1, "dim", 0)) : unique(x);
  Arrays results{all.values};
  if (c.flag(-1, "return_inverse", false)) results.push_back(all.inverse);
  if (c.flag(-1, "return_counts", false)) results.push_back(all.counts);
  return results;
}

Array sorted_places(Call& c) {
  c.has(-1, "out_int32");
  const Array x = c.array(0);
  const Array sorted = c.has(-1, "sorter") ? take_along(x, c.array(-1, "sorter"), 0) : x;
  return searchsorted(sorted, c.array(1), c.flag(-1, "right", false) || c.text(-1, "side") == "right");
}

Array histogram_of(Call& c) {
  const Array x = c.array(0);
  double low = c.real(2, "min", 0), high = c.real(3, "max", 0);
  if (low == high && x.count() > 0) low = minimum(x).item(), high = maximum(x).item();
  if (low == high) low -= 1, high += 1;
  return cast(histogram(x, c.integer(1, "bins", 100), low, high), x.dtype());
}
Array counted(Call& c) {
  const Array x = c.array(0);
  const int64_t most = x.count() == 0 ? 0 : maximum(x).item<int64_t>() + 1;
  const int64_t classes = std::max(most, c.integer(2, "minlength", 0));
  return c.has(1, "weights") ? bincount(x, classes, cast(c.array(1, "weights"), Float64)) : bincount(x, classes);
}
Array one_hot(Call& c) {
  const Array x = c.array(0);
  const int64_t classes = c.integer(1, "num_classes", -1);
  return cast(onehot(x, classes < 0 ? maximum(x).item<int64_t>() + 1 : classes), Int64);
}

DType type_of(Call& c, DType usual = Float32) { return c.typed(zeros({}, usual)).dtype(); }
Shape sizes_at(Call& c, int at) {
  const Sizes sizes = c.sizes(at, "size");
  return Shape(std::span<const int64_t>(sizes));
}
Array like(Call& c, double value) { return c.typed(full_like(c.array(0), value)); }
Array newly(Call& c, double value) { return full(sizes_at(c, 1), value, type_of(c, c.array(0).dtype())); }

Array range_of(Call& c) {
  const bool one = !c.has(1, "end");
  const double start = one ? 0 : c.real(0, "", 0), end = one ? c.real(0, "", 0) : c.real(1, "end", 0);
  const double step = c.real(2, "step", 1);
  bool whole = c.text(-1, "dtype").empty();
  for (const Value& value : c.values) whole = whole && value.kind != Value::Kind::real;
  if (whole) return arange(static_cast<int64_t>(start), static_cast<int64_t>(end), static_cast<int64_t>(step));
  return arange(start, end, step, type_of(c));
}
Array even_steps(Call& c) {
  return linspace(c.real(0, "", 0), c.real(1, "end", 0), c.integer(2, "steps", 100), type_of(c));
}
Array even_powers(Call& c) {
  const Array exponents = linspace(c.real(0, "", 0), c.real(1, "end", 0), c.integer(2, "steps", 100), Float64);
  return cast(pow(Array(c.real(3, "base", 10)), exponents), type_of(c));
}

/// PyTorch's triangle of a matrix as rows and columns of its places.
Array triangle_places(Call& c, Array (*part)(const Array&, int64_t)) {
  const int64_t rows = c.integer(0, "", 0), columns = c.integer(1, "", 0);
  c.has(-1, "dtype");
  return transpose(places_in_dims(part(ones({columns, rows}), -c.integer(2, "offset", 0))));
}

const Table table(
    "indexing",
    {
        {"gather", gathered},
        {"take_along_dim", taken_along},
        {"index_select", index_selected},
        {"take", [](Call& c) { return gather(reshape(c.array(0), {-1}), indices(c, 1), 0); }},
        {"scatter", [](Call& c) { return scattered_elements(c, c.text(-1, "reduce")); }},
        {"scatter_add", [](Call& c) { return scattered_elements(c, "add"); }},
        {"scatter_reduce/sum", scatter_reduced},
        {"scatter_reduce/prod", scatter_reduced},
        {"scatter_reduce/mean", scatter_reduced},
        {"scatter_reduce/amax", scatter_reduced},
        {"scatter_reduce/amin", scatter_reduced},
        {"index_add",
         [](Call& c) { return scattered_slices(c, "add", c.real(-1, "alpha", 1) * c.array(3, "source")); }},
        {"index_copy", [](Call& c) { return scattered_slices(c, "copy", c.array(3, "source")); }},
        {"index_fill",
         [](Call& c) { return scattered_slices(c, "copy", c.array(3, "value") + zeros({}, c.array(0).dtype())); }},
        {"index_reduce/prod", index_reduced},
        {"index_reduce/mean", index_reduced},
        {"index_reduce/amax", index_reduced},
        {"index_reduce/amin", index_reduced},
        {"index_put", index_put},
        {"masked_select", masked},
        {"masked_scatter", masked_from},
        {"nonzero",
         [](Call& c) {
           if (!c.flag(-1, "as_tuple", false)) return Arrays{places_in_dims(c.array(0))};
           const Array x = with_dim(c.array(0)), places = places_in_dims(x);
           Arrays columns;
           for (int d = 0; d < x.rank(); ++d) columns.push_back(row(places, d));
           return columns;
         }},
        {"argwhere", [](Call& c) { return places_in_dims(c.array(0)); }},
        {"isin", [](Call& c) { return isin(c.array(0), c.array(1)); }},
        {"sort", sorted},
        {"argsort", [](Call& c) { return sorted(c)[1]; }},
        {"msort", [](Call& c) { return sort(c.array(0), -1); }},
        {"topk", top},
        {"unique", uniques},
        {"searchsorted", sorted_places},
        {"bucketize",
         [](Call& c) {
           c.has(-1, "out_int32");
           return searchsorted(c.array(1), c.array(0), c.flag(-1, "right", false));
         }},
        {"histc", histogram_of},
        {"bincount", counted},
        {"nn.functional.one_hot", one_hot},
    });

const Table numbers("indexing",
                    {
                        {"zeros_like", [](Call& c) { return like(c, 0); }},
                        {"ones_like", [](Call& c) { return like(c, 1); }},
                        {"full_like", [](Call& c) { return like(c, c.real(1, "fill_value", 0)); }},
                        {"new_zeros", [](Call& c) { return newly(c, 0); }},
                        {"new_ones", [](Call& c) { return newly(c, 1); }},
                        {"new_full", [](Call& c) { return newly(c, c.real(2, "fill_value", 0)); }},
                        {"fill",
                         [](Call& c) { return where(zeros_like(c.array(0)) > 0, c.array(0), c.array(1, "value")); }},
                        {"zeros", [](Call& c) { return zeros(sizes_at(c, 0), type_of(c)); }},
                        {"ones", [](Call& c) { return ones(sizes_at(c, 0), type_of(c)); }},
                        {"full", [](Call& c) { return full(sizes_at(c, 0), c.real(1, "fill_value", 0), type_of(c)); }},
                        {"scalar_tensor", [](Call& c) { return full({}, c.real(0, "", 0), type_of(c)); }},
                        {"eye",
                         [](Call& c) {
                           const int64_t rows = c.integer(0, "", 0);
                           return eye(c.integer(1, "m", rows), rows, type_of(c));
                         }},
                        {"arange", range_of},
                        {"linspace", even_steps},
                        {"logspace", even_powers},
                        {"tril_indices", [](Call& c) { return triangle_places(c, triu); }},
                        {"triu_indices", [](Call& c) { return triangle_places(c, tril); }},
                    });

}  // namespace
}  // namespace rosin::opinfo
