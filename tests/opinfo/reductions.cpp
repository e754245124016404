// Rows of reductions, running reductions and what is made of them. Read first: call.hpp.
#include <limits>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Reduction = Array (*)(const Array&, Dims);

Array over(Call& c, const Array& x, Reduction f, int dim_at = 1, int keep_at = 2) {
  const std::vector<int> dims = c.dims(x, dim_at, "dim");
  return without(f(x, Dims(dims)), dims, c.flag(keep_at, "keepdim", false));
}
template <Reduction f> Array reduced(Call& c) { return over(c, c.typed(c.array(0)), f); }

/// Without a dim the values alone; along one dim the places too.
template <Reduction f> Arrays with_places(Call& c, Array (*places)(const Array&, int)) {
  const Array x = c.array(0);
  if (!c.has(1, "dim")) return {over(c, x, f)};
  const std::vector<int> dims = c.dims(x, 1, "dim");
  return {over(c, x, f), without(places(x, dims[0]), dims, c.flag(2, "keepdim", false))};
}

Array place(Call& c, const Array& x, Array (*of_all)(const Array&), Array (*along)(const Array&, int)) {
  const bool keep = c.flag(2, "keepdim", false);
  if (!c.has(1, "dim")) {
    const Array at = of_all(x);
    return keep ? reshape(at, std::vector<int64_t>(static_cast<size_t>(x.rank()), 1)) : at;
  }
  const std::vector<int> dims = c.dims(x, 1, "dim");
  return without(along(x, dims[0]), dims, keep);
}
Array argmax_of(Call& c, const Array& x) { return place(c, x, argmax, argmax); }
Array argmin_of(Call& c, const Array& x) { return place(c, x, argmin, argmin); }

bool corrected(Call& c) {
  if (!c.has(-1, "correction")) return c.flag(-1, "unbiased", c.flag(1, "", true));
  const double correction = c.real(-1, "correction", 1);
  if (correction != 0 && correction != 1) throw Refused("var and stddev divide by n or n - 1");
  return correction == 1;
}

/// The dims are the first argument unless that is `unbiased`.
std::vector<int> spread_dims(Call& c, const Array& x) {
  const Value* const first = c.find(1, "dim");
  const bool is_flag = first && first->kind == Value::Kind::boolean;
  return c.dims(x, is_flag ? -1 : 1, "dim");
}
Array spread(Call& c, const Array& x, Array (*f)(const Array&, Dims, bool)) {
  const std::vector<int> dims = spread_dims(c, x);
  return without(f(x, Dims(dims), corrected(c)), dims, c.flag(-1, "keepdim", false));
}
Array var_of(Call& c) { return spread(c, c.array(0), var); }
Array std_of(Call& c) { return spread(c, c.array(0), stddev); }
Array mean_of(Call& c) {
  const std::vector<int> dims = spread_dims(c, c.array(0));
  return without(mean(c.array(0), Dims(dims)), dims, c.flag(-1, "keepdim", false));
}
Arrays var_mean(Call& c) { return {var_of(c), mean_of(c)}; }
Arrays std_mean(Call& c) { return {std_of(c), mean_of(c)}; }

double order(Call& c, int at, const char* name) {
  const Value* const p = c.find(at, name);
  if (p && p->kind == Value::Kind::text && p->text == "fro") return 2;
  if (p && p->kind == Value::Kind::text && p->text.ends_with("inf")) return p->text == "inf" ? infinity : -infinity;
  if (p && p->kind == Value::Kind::text) throw Refused("norm: no order " + p->text);
  return c.real(at, name, 2);
}
Array norm_of(Call& c) {
  const Array x = c.array(0);
  const std::vector<int> dims = c.dims(x, 2, "dim");
  return without(linalg::vector_norm(x, order(c, 1, "p"), Dims(dims)), dims, c.flag(3, "keepdim", false));
}

template <Array (*f)(const Array&, int)> Array running(Call& c) {
  const Array x = c.typed(c.array(0));
  return f(x, c.dim(x, 1, "dim", 0));
}
/// With the place of the last element that is the running one.
template <Array (*f)(const Array&, int)> Arrays running_values(Call& c) {
  const Array x = c.array(0), y = running<f>(c);
  if (x.rank() == 0) return {y, zeros({}, Int64)};
  const int dim = c.dim(x, 1, "dim", 0);
  std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
  sizes[static_cast<size_t>(dim)] = x.size(dim);
  return {y, cummax(where(x == y, reshape(arange(x.size(dim)), sizes), -1), dim)};
}

/// The k-th smallest along a dim and its place.
Arrays kth(Call& c, const Array& x, int64_t k, int dim_at) {
  const std::vector<int> dims{c.dim(x, dim_at, "dim", -1)};
  const bool keep = c.flag(dim_at + 1, "keepdim", false);
  if (x.rank() == 0) return {identity(x), argsort(x, 0)};
  const Array order = argsort(x, dims[0]);
  const Array at = slice(order, dims[0], k, k + 1);
  return {without(take_along(x, at, dims[0]), dims, keep), without(at, dims, keep)};
}
Arrays lower_median(Call& c) {
  const Array x = c.array(0);
  if (!c.has(1, "dim")) return {select(sort(reshape(x, {-1})), 0, (x.count() - 1) / 2)};
  const int dim = c.dim(x, 1, "dim", -1);
  return kth(c, x, x.rank() == 0 ? 0 : (x.size(dim) - 1) / 2, 1);
}

Array quantiles(Call& c) {
  const Array x = c.array(0), q = c.array(1, "q");
  static const std::map<std::string, Between> ways = {{"linear", Between::linear},
                                                      {"lower", Between::lower},
                                                      {"higher", Between::higher},
                                                      {"midpoint", Between::midpoint},
                                                      {"nearest", Between::nearest}};
  const Between between = ways.at(c.text(-1, "interpolation", "linear"));
  const std::vector<int> dims = c.dims(x, 2, "dim");
  const bool keep = c.flag(3, "keepdim", false);
  const Array all = quantile(x, q, Dims(dims), between);
  if (keep || x.rank() == 0) return all;
  return squeeze(all, dims);
}

/// What a mask leaves out is replaced by what does not count.
template <Reduction f> Array masked(Call& c, double neutral) {
  Array x = c.typed(c.array(0));
  if (c.has(-1, "mask")) x = where(c.array(-1, "mask"), x, neutral);
  return over(c, x, f);
}
Array mask_of(Call& c) { return c.has(-1, "mask") ? c.array(-1, "mask") : ones_like(c.array(0)) > 0; }
Array masked_along(Call& c, Array (*f)(const Array&, int), double neutral) {
  const Array x = c.typed(c.array(0));
  return f(where(mask_of(c), x, neutral), c.dim(x, 1, "dim", 0));
}

/// PyTorch gives places as numbers of the input's type there.
Array of_its_type(Call& c, const Array& places) { return cast(places, c.array(0).dtype()); }

Array masked_mean(Call& c) {
  const Array x = c.typed(c.array(0)), mask = mask_of(c);
  return over(c, where(mask, x, 0), sum) / over(c, cast(expand(mask, x.shape()), x.dtype()), sum);
}

template <Array (*f)(const Array&, int)> Array along(Call& c, const Array& x) { return f(x, c.dim(x, 1, "dim", -1)); }

/// Differences of neighbours, n times, of x between what comes before and behind.
Array differences(Call& c) {
  Array x = c.array(0);
  const int dim = c.dim(x, 2, "dim", -1);
  if (c.integer(1, "n", 1) == 0) return c.has(3, "prepend"), c.has(4, "append"), x;
  if (c.has(3, "prepend")) x = concat({c.array(3, "prepend"), x}, dim);
  if (c.has(4, "append")) x = concat({x, c.array(4, "append")}, dim);
  return diff(x, dim, c.integer(1, "n", 1));
}

/// What f makes of y along a dim, whose places are `x`, or lie `dx` apart.
Array area(Call& c, Array (*f)(const Array&, const Array&, int), bool sum) {
  const Array y = c.array(0);
  const int dim = c.dim(y, -1, "dim", -1);
  Array dx = c.real(-1, "dx", 1);
  if (c.has(1, "x")) {
    const Array x = c.array(1, "x");
    dx = diff(x, x.rank() == 1 ? 0 : dim);
  }
  const Array areas = f(y, dx, dim);
  return sum ? squeeze(areas, dim) : areas;
}
Array trapezoids(Call& c) { return area(c, trapezoid, true); }

Array normalized(Call& c) {
  const Array x = c.array(0);
  const int dim = c.dim(x, 2, "dim", 1);
  return x / max(linalg::vector_norm(x, c.real(1, "p", 2), dim), c.real(3, "eps", 1e-12));
}

const Table table("reductions",
                  {
                      {"sum", reduced<sum>},
                      {"prod", reduced<prod>},
                      {"mean", reduced<mean>},
                      {"amax", reduced<maximum>},
                      {"amin", reduced<minimum>},
                      {"aminmax",
                       [](Call& c) {
                         return Arrays{over(c, c.array(0), minimum, -1, -1), over(c, c.array(0), maximum, -1, -1)};
                       }},
                      {"max/reduction_no_dim", reduced<maximum>},
                      {"min/reduction_no_dim", reduced<minimum>},
                      {"max/reduction_with_dim", [](Call& c) { return with_places<maximum>(c, argmax); }},
                      {"min/reduction_with_dim", [](Call& c) { return with_places<minimum>(c, argmin); }},
                      {"argmax", [](Call& c) { return argmax_of(c, c.array(0)); }},
                      {"argmin", [](Call& c) { return argmin_of(c, c.array(0)); }},
                      {"any", [](Call& c) { return over(c, cast(c.array(0), Bool), any); }},
                      {"all", [](Call& c) { return over(c, cast(c.array(0), Bool), all); }},
                      {"count_nonzero", reduced<count_nonzero>},
                      {"nansum", reduced<nansum>},
                      {"nanmean", reduced<nanmean>},
                      {"logsumexp", reduced<logsumexp>},
                      {"var", var_of},
                      {"var/unbiased", var_of},
                      {"std", std_of},
                      {"std/unbiased", std_of},
                      {"var_mean", var_mean},
                      {"var_mean/unbiased", var_mean},
                      {"std_mean", std_mean},
                      {"std_mean/unbiased", std_mean},
                      {"norm", norm_of},
                      {"norm/fro", norm_of},
                      {"norm/inf", norm_of},
                      {"dist",
                       [](Call& c) {
                         const Array x = reshape(c.array(0) - c.array(1), {-1});
                         return squeeze(norm(x, 0, c.real(2, "p", 2)));
                       }},
                      {"cumsum", running<cumsum>},
                      {"cumprod", running<cumprod>},
                      {"cummax", running_values<cummax>},
                      {"cummin", running_values<cummin>},
                      {"logcumsumexp", running<logcumsumexp>, 200},
                      {"median", lower_median},
                      {"kthvalue", [](Call& c) { return kth(c, c.array(0), c.integer(1, "k", 1) - 1, 2); }},
                      {"quantile", quantiles},
                      {"diff", differences},
                      {"trapezoid", trapezoids},
                      {"trapz", trapezoids},
                      {"cumulative_trapezoid", [](Call& c) { return area(c, cumulative_trapezoid, false); }},
                      {"softmax", [](Call& c) { return along<softmax>(c, c.typed(c.array(0))); }},
                      {"softmax/with_dtype", [](Call& c) { return along<softmax>(c, c.typed(c.array(0))); }},
                      {"log_softmax", [](Call& c) { return along<logsoftmax>(c, c.typed(c.array(0))); }},
                      {"log_softmax/with_dtype", [](Call& c) { return along<logsoftmax>(c, c.typed(c.array(0))); }},
                      {"nn.functional.softmin", [](Call& c) { return along<softmax>(c, -c.typed(c.array(0))); }},
                      {"nn.functional.softmin/with_dtype",
                       [](Call& c) { return along<softmax>(c, -c.typed(c.array(0))); }},
                      {"nn.functional.normalize", normalized},
                  });

const Table of_masks(
    "reductions", {
                      {"masked.sum", [](Call& c) { return masked<sum>(c, 0); }},
                      {"masked.prod", [](Call& c) { return masked<prod>(c, 1); }},
                      {"masked.amax", [](Call& c) { return masked<maximum>(c, -infinity); }},
                      {"masked.amin", [](Call& c) { return masked<minimum>(c, infinity); }},
                      {"masked.logsumexp", [](Call& c) { return masked<logsumexp>(c, -infinity); }},
                      {"masked.mean", masked_mean},
                      {"masked.argmax",
                       [](Call& c) { return of_its_type(c, argmax_of(c, where(mask_of(c), c.array(0), -infinity))); }},
                      {"masked.argmin",
                       [](Call& c) { return of_its_type(c, argmin_of(c, where(mask_of(c), c.array(0), infinity))); }},
                      {"masked.cumsum", [](Call& c) { return masked_along(c, cumsum, 0); }},
                      {"masked.cumprod", [](Call& c) { return masked_along(c, cumprod, 1); }},
                      {"masked.softmax", [](Call& c) { return masked_along(c, softmax, -infinity); }},
                      {"masked.log_softmax", [](Call& c) { return masked_along(c, logsoftmax, -infinity); }},
                  });

}  // namespace
}  // namespace rosin::opinfo
