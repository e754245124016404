// Finding and counting; see rosin/search.hpp. Made of sorts, gathers and scatters, whose gradients they have.
#include <rosin/search.hpp>

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/rearrange.hpp>
#include <rosin/sort.hpp>

#include "base/workers.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/refuse_type.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

Array as_vector(const Array& x) { return reshape(x, {-1}); }

/// Whether s comes before v, or at most with it; NaN comes after all numbers.
Array comes_before(const Array& s, const Array& v, bool or_with) {
  if (or_with) return logical_not(logical_or(lt(v, s), logical_and(is_nan(s), logical_not(is_nan(v)))));
  return logical_or(lt(s, v), logical_and(is_nan(v), logical_not(is_nan(s))));
}

/// x with the dims of the mask as dim 0, then the others.
Array with_dims_first(const Array& x, uint64_t mask) {
  std::vector<int> order;
  std::vector<int64_t> sizes = {reduced_count(x.shape(), mask)};
  for (int d = 0; d < x.rank(); ++d) {
    if (mask >> d & 1) order.push_back(d);
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (mask >> d & 1) continue;
    order.push_back(d);
    sizes.push_back(x.size(d));
  }
  return reshape(permute(x, order), sizes);
}

/// The shape of x with size 1 in the dims of the mask.
std::vector<int64_t> kept_sizes(const Array& x, uint64_t mask) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.rank(); ++d) sizes.push_back(mask >> d & 1 ? 1 : x.size(d));
  return sizes;
}

/// Between two neighbours, a share of the way.
Array part_of_way(const Array& below, const Array& above, const Array& share) {
  return where(eq(below, above), below, below + (above - below) * share);
}

/// The element of ascending columns at a place that may lie between two.
Array element_at(const Array& sorted, double place, Between between) {
  const double low = std::floor(place), high = std::ceil(place);
  const auto element = [&](double rank) { return select(sorted, 0, static_cast<int64_t>(rank)); };
  switch (between) {
    case Between::lower: return element(low);
    case Between::higher: return element(high);
    case Between::nearest: return element(std::nearbyint(place));
    case Between::midpoint:
    case Between::linear: break;
  }
  return part_of_way(element(low), element(high), between == Between::midpoint ? 0.5 : place - low);
}

/// The same at places (k), which are never outside: (k, columns...).
Array elements_at(const Array& sorted, const Array& places, Between between) {
  const Array low = floor(places), high = ceil(places);
  const auto elements = [&](const Array& ranks) { return gather(sorted, cast(ranks, Int32), 0); };
  switch (between) {
    case Between::lower: return elements(low);
    case Between::higher: return elements(high);
    case Between::nearest: return elements(round(places));
    case Between::midpoint: return part_of_way(elements(low), elements(high), 0.5);
    case Between::linear: break;
  }
  return part_of_way(elements(low), elements(high), places - low);
}

/// The quantile along dim 0 of floats.
Array quantile_of_columns(const Array& columns, double q, Between between) {
  const Array sorted = sort(columns, 0);
  const Array found = element_at(sorted, q * static_cast<double>(columns.size(0) - 1), between);
  const Array last = select(sorted, 0, columns.size(0) - 1);  // NaN is sorted last
  return where(is_nan(last), last, found);
}

/// Of `bins` + 1 edges from low to high, the last one that is at most the value, which lies between them: Int32. Where
/// the edges are far enough apart for the digits of the values, a division finds it or one beside it.
Array last_edge_before(const Array& values, int64_t bins, double low, double high) {
  const double width = (high - low) / static_cast<double>(bins), digit = values.dtype() == Float64 ? 0x1p-52 : 0x1p-23;
  const auto edge = [&](const Array& i) { return low + cast(i, values.dtype()) * width; };
  const bool divides =
      width >= 8 * digit * std::max(std::abs(low), std::abs(high)) && width > 1e-30 && high - low < 1e30;
  if (!divides) return searchsorted(edge(arange(bins + 1)), values, true) - 1;
  const Array near = floor((values - low) / width), next = near + 1;
  return cast(where(lt(values, edge(near)), near - 1, where(ge(values, edge(next)), next, near)), Int32);
}

/// Errors (dtype, argument) of bincount.
void require_classes(const Array& x, int64_t classes) {
  if (is_float(x.dtype()) || is_complex(x.dtype())) {
    refuse(ErrorKind::dtype, "bincount", "it counts integers", to_string(x.dtype()), "cast them");
  }
  if (classes < 0) {
    refuse(ErrorKind::shape, "bincount", "there are 0 classes or more", std::to_string(classes), "count them");
  }
}

/// For each class the sum of a vector of weights; numbers outside have a class of their own, which nobody sees.
Array sums_of_classes(const Array& x, int64_t classes, const Array& weights) {
  const DeviceScope scope(*x.node());
  const bool narrow = size_of(x.dtype()) <= 4 && x.dtype() != UInt32,
             few = classes < std::numeric_limits<int32_t>::max();
  const Array numbers = cast(as_vector(x), narrow && few ? Int32 : Int64);
  const Array known = where(logical_and(ge(numbers, 0), lt(numbers, classes)), numbers, classes);
  return slice(scatter_add(zeros({classes + 1}, weights.dtype()), few ? cast(known, Int32) : known, weights, 0), 0, 0,
               classes);
}

void require_element(std::string_view op, const Array& x, uint64_t mask) {
  if (reduced_count(x.shape(), mask) != 0) return;
  refuse(ErrorKind::argument, op, "there is an element", to_string(x.shape()), "check the sizes before the call");
}

Array quantile_over(std::string_view op, const Array& x, double q, uint64_t mask, Between between) {
  if (!(q >= 0 && q <= 1)) {
    refuse(ErrorKind::argument, op, "q lies in [0, 1]", std::to_string(q), "0.5 is the median");
  }
  require_element(op, x, mask);
  const Array values = is_float(x.dtype()) ? x : cast(x, Float32);
  const std::vector<int64_t> sizes = kept_sizes(x, mask);
  return narrow(reshape(quantile_of_columns(wide(with_dims_first(values, mask)), q, between), sizes), values);
}

/// The shape of x with size 1 in the dims of the mask, and a last dim for the quantiles of a vector.
Array quantiles_over(const Array& x, const Array& q, uint64_t mask, Between between) {
  if (q.rank() > 1)
    refuse(ErrorKind::shape, "quantile", "q is a number or a vector", to_string(q.shape()), "reshape it");
  require_element("quantile", x, mask);
  const DeviceScope scope(*x.node());
  const Array values = is_float(x.dtype()) ? x : cast(x, Float32), columns = wide(with_dims_first(values, mask));
  const Array shares = reshape(cast(q, columns.dtype()), {-1}), sorted = sort(columns, 0);
  const Array inside = logical_and(ge(shares, 0), le(shares, 1));
  const int64_t last = columns.size(0) - 1;
  const Array found = elements_at(sorted, where(inside, shares, 0) * static_cast<double>(last), between);
  const Array largest = slice(sorted, 0, last, last + 1);  // NaN is sorted last
  const Array known = where(is_nan(largest), largest, where(inside, found, std::numeric_limits<double>::quiet_NaN()));
  std::vector<int64_t> sizes = kept_sizes(x, mask);
  if (q.rank() == 1) sizes.push_back(q.count());
  return narrow(reshape(movedim(known, 0, -1), sizes), values);
}

/// All dims; the result has rank 0.
Array quantile_of_all(std::string_view op, const Array& x, double q, Between between) {
  return reshape(quantile_over(op, as_vector(x), q, 1, between), Shape{});
}

/// Whether each element of a sorted vector, which is not empty, differs from the one before it.
Array first_of_kind(const Array& sorted) {
  const Array left = slice(sorted, 0, 0, -1), right = slice(sorted, 0, 1, to_end);
  const Array differs = logical_and(ne(left, right), logical_not(logical_and(is_nan(left), is_nan(right))));
  return concat({ones({1}, Bool), differs}, 0);
}

/// Each part of the elements is counted, so that it knows where its places begin.
Array places_of_true(std::span<const uint8_t> holds) {
  constexpr size_t part = 1 << 15;
  const auto parts = static_cast<int64_t>((holds.size() + part - 1) / part);
  std::vector<int64_t> ends(static_cast<size_t>(parts) + 1);
  parallel_for(parts, [&](int64_t i) {
    const size_t first = static_cast<size_t>(i) * part, count = std::min(part, holds.size() - first);
    int32_t found = 0;
    for (const uint8_t one : holds.subspan(first, count)) found += one != 0;
    ends[static_cast<size_t>(i) + 1] = found;
  });
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  const Array places = fresh_leaf(Int64, {ends.back()});
  auto* const all = static_cast<int64_t*>(places.node()->data());
  parallel_for(parts, [&](int64_t i) {
    int64_t *to = all + ends[static_cast<size_t>(i)], *const end = all + ends[static_cast<size_t>(i) + 1];
    // No branch on an element: its place is written, and overwritten by the next one where it does not count.
    for (int64_t at = i * static_cast<int64_t>(part); to != end; ++at) {
      *to = at;
      to += holds[static_cast<size_t>(at)] != 0;
    }
  });
  return places;
}

const bool named[] = {name_function(nonzero, "nonzero"), name_function(median, "median")};

}  // namespace

Array nonzero(const Array& x) {
  const Array holds = on_cpu(x.dtype() == Bool ? as_vector(x) : ne(as_vector(x), 0));
  const DeviceScope scope(*x.node());
  return in_scope(places_of_true({static_cast<const uint8_t*>(holds.node()->data()), static_cast<size_t>(x.count())}));
}

Array masked_select(const Array& x, const Array& mask) {
  if (mask.dtype() != Bool) {
    refuse(ErrorKind::dtype, "masked_select", "the mask is Bool", to_string(mask.dtype()), "compare, as in x > 0");
  }
  if (mask.shape() != x.shape()) {
    refuse(ErrorKind::shape, "masked_select", "the mask has the shape of x",
           to_string(mask.shape()) + " and " + to_string(x.shape()), "expand one of them");
  }
  return gather(as_vector(x), nonzero(mask), 0);
}

Array isin(const Array& x, const Array& values) {
  const DeviceScope scope(*x.node());
  const Array sorted = sort(as_vector(values), 0);
  if (sorted.count() == 0) return zeros(x.shape(), Bool);
  const Array place = min(searchsorted(sorted, x), sorted.count() - 1);
  return eq(gather(sorted, place, 0), x);
}

Unique unique(const Array& x) {
  const DeviceScope scope(*x.node());
  const int64_t n = x.count();
  if (n == 0) return {as_vector(x), zeros(x.shape(), Int32), zeros({0}, Int64)};
  const auto [sorted, order] = topk(as_vector(x), n, 0, false);
  const Array begins = first_of_kind(sorted), places = nonzero(begins);
  const Array classes = cast(cumsum(cast(begins, Int32), 0) - 1, Int32);
  const Array ends = concat({slice(places, 0, 1, to_end), full({1}, n, Int64)}, 0);
  const Array inverse = scatter(zeros({n}, Int32), order, classes, 0);
  return {gather(sorted, places, 0), reshape(inverse, x.shape()), ends - places};
}

Unique unique(const Array& x, int dim) {
  const int along = checked_dim("unique", dim, x.shape());
  const DeviceScope scope(*x.node());
  const int64_t n = x.size(along);
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != along) order.push_back(d);
  }
  order.push_back(along);
  const int64_t length = n == 0 ? 0 : x.count() / n;
  const std::vector<int32_t> ranks = permute(unique(x).inverse, order).to_vector<int32_t>();
  const auto compare = [&](int64_t a, int64_t b) {
    const auto slice_at = [&](int64_t i) { return std::span(ranks).subspan(static_cast<size_t>(i * length)); };
    const auto first = slice_at(a).first(static_cast<size_t>(length)), second = slice_at(b);
    return std::lexicographical_compare_three_way(first.begin(), first.end(), second.begin(), second.begin() + length);
  };
  std::vector<int64_t> sorted(static_cast<size_t>(n)), places, counts;
  std::iota(sorted.begin(), sorted.end(), int64_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<int32_t> inverse(sorted.size());
  for (const int64_t i : sorted) {
    if (places.empty() || compare(places.back(), i) != 0) {
      places.push_back(i);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(i)] = static_cast<int32_t>(places.size() - 1);
  }
  const auto kinds = static_cast<int64_t>(places.size());
  return {gather(x, in_scope(Array(places, {kinds})), along), in_scope(Array(inverse, {n})),
          in_scope(Array(counts, {kinds}))};
}

Array searchsorted(const Array& sorted, const Array& values, bool right) {
  const bool one = sorted.rank() == 1;
  if (sorted.rank() == 0 || (!one && (sorted.rank() != values.rank() ||
                                      with_size(sorted.shape(), 0, 0) != with_size(values.shape(), 0, 0)))) {
    refuse(ErrorKind::shape, "searchsorted", "it takes a vector, or columns of the same other dims as the values",
           to_string(sorted.shape()) + " for " + to_string(values.shape()), "reshape it");
  }
  const int64_t n = sorted.size(0);
  const DeviceScope scope(*values.node());
  int64_t step = 1;
  while (step <= n / 2) step *= 2;
  Array place = zeros(values.shape(), Int32);
  for (; n > 0 && step > 0; step /= 2) {
    const Array next = place + step, at = min(next, n) - 1;
    const Array before = comes_before(one ? gather(sorted, at, 0) : take_along(sorted, at, 0), values, right);
    place = where(logical_and(le(next, n), before), next, place);
  }
  return place;
}

Array bincount(const Array& x, int64_t classes) {
  require_classes(x, classes);
  const DeviceScope scope(*x.node());
  return sums_of_classes(x, classes, ones({x.count()}, Int64));
}

Array bincount(const Array& x, int64_t classes, const Array& weights) {
  require_classes(x, classes);
  if (weights.shape() != x.shape()) {
    refuse(ErrorKind::shape, "bincount", "weights have the shape of x",
           to_string(weights.shape()) + " and " + to_string(x.shape()), "expand the weights");
  }
  return sums_of_classes(x, classes, as_vector(weights));
}

Array histogram(const Array& x, int64_t bins, double low, double high) {
  if (bins < 1 || !(high > low)) {
    refuse(ErrorKind::argument, "histogram", "there are bins between low and high",
           std::to_string(bins) + " in [" + std::to_string(low) + ", " + std::to_string(high) + "]",
           "give the range of the values");
  }
  const DeviceScope scope(*x.node());
  const Array values = is_float(x.dtype()) ? as_vector(wide(x)) : cast(as_vector(x), Float32);
  const Array inside = logical_and(ge(values, low), le(values, high));
  return bincount(where(inside, min(last_edge_before(values, bins, low, high), bins - 1), -1), bins);
}

Array quantile(const Array& x, double q, Between between) { return quantile_of_all("quantile", x, q, between); }
Array quantile(const Array& x, double q, Dims dims, Between between) {
  return quantile_over("quantile", x, q, dims_mask("quantile", dims, x.shape()), between);
}
Array quantile(const Array& x, const Array& q, Between between) {
  return reshape(quantiles_over(as_vector(x), q, 1, between), q.shape());
}
Array quantile(const Array& x, const Array& q, Dims dims, Between between) {
  return quantiles_over(x, q, dims_mask("quantile", dims, x.shape()), between);
}
Array median(const Array& x) { return quantile_of_all("median", x, 0.5, Between::linear); }
Array median(const Array& x, Dims dims) {
  return quantile_over("median", x, 0.5, dims_mask("median", dims, x.shape()), Between::linear);
}

}  // namespace rosin
