// Running reductions, and the linear recurrence that their gradients are made of. Read first: reducers.cpp.
#include <algorithm>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/reducers.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

// What stands at i + 1 (forward) or i - 1 (backward), with `value` where nothing does.
Array shifted(const Array& x, int dim, bool forward, const Array& value) {
  const int64_t size = x.size(dim);
  if (size == 0) return x;
  return forward ? pad(slice(x, dim, 1, size), dim, 0, 1, value) : pad(slice(x, dim, 0, size - 1), dim, 1, 0, value);
}

// Where y[i] = combine(y[i - 1], x[i]), what reaches y[i] from all that follow is a recurrence backwards, with the
// slopes by y[i - 1] as its factors. (For products these are the elements: no division, right at zeros.)
void running_gradient(Backward& b) {
  const auto attributes = b.attributes<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  const Reducer& reducer = *b.node().op->reducer;
  const Array x = b.in(0), y = b.out();
  const Array before = shifted(y, dim, reversed, neutral_of(reducer, y.dtype()));
  const Slopes slopes = reducer.slopes(before, x, y);
  const Array after = recurrence(shifted(slopes.by_before, dim, !reversed, 0), b.gradient, dim, !reversed);
  b.give(0, slopes.by_x * after);
}

void sum_gradient(Backward& b);
void recurrence_gradient(Backward& b);

// Backwards is a running sum too: simpler than the gradient of other reducers.
const Op& cumsum_op = running_op("cumsum", "running sum along a dim", sum_reducer).with_gradient(sum_gradient);
const Op& cumprod_op =
    running_op("cumprod", "running product along a dim; the gradient holds at zeros", product_reducer);
const Op& cummax_op = running_op("cummax",
                                 "largest element so far along a dim, NaN from the first one on; of equal ones the "
                                 "last takes the gradient",
                                 maximum_reducer);
const Op& cummin_op = running_op("cummin", "smallest element so far along a dim, as cummax", minimum_reducer);
const Op& logcumsumexp_op = running_op(
    "logcumsumexp", "logarithm of the running sum of exp(x) along a dim, without overflow", logaddexp_reducer);
const Op& recurrence_op = *register_op({.name = "recurrence",
                                        .kind = Kind::scan,
                                        .operands = 2,
                                        .doc = "h[i] = a[i] * h[i - 1] + b[i] along a dim",
                                        .scan = Scan::recurrence,
                                        .attribute_words = 2,
                                        .gradient = recurrence_gradient});

void sum_gradient(Backward& b) {
  const auto [dim, reversed] = b.attributes<ScanAttributes>();
  b.give(0, record_scan(cumsum_op, b.gradient, static_cast<int>(dim), reversed == 0));
}

void recurrence_gradient(Backward& b) {
  const auto attributes = b.attributes<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  const Array by_b = recurrence(shifted(b.in(0), dim, !reversed, 0), b.gradient, dim, !reversed);
  b.give(1, by_b);
  if (b.needs(0)) b.give(0, by_b * shifted(b.out(), dim, reversed, 0));
}

// x as elements of `type`, combined along `dim`.
Array along(const Op& op, const Array& x, int dim, DType (*type_of)(DType)) {
  require(op, x);
  if (is_dim_of_one(dim, x.shape())) return reshape(along(op, reshape(x, {1}), 0, type_of), Shape{});
  const int at = checked_dim(op.name, dim, x.shape());
  const DType type = type_of(x.dtype());
  return record_scan(op, x.dtype() == type ? x : cast(x, type), at, false);
}

// Bool is combined as numbers.
Array extreme_along(const Op& op, const Array& x, int dim) {
  const auto own = [](DType type) { return type == DType::Bool ? DType::UInt8 : type; };
  const Array y = along(op, x, dim, own);
  return x.dtype() == Bool ? cast(y, Bool) : y;
}

}  // namespace

Array record_scan(const Op& op, const Array& x, int dim, bool reversed) {
  return record_one(op, x, x.dtype(), x.shape(), Attributes::of(ScanAttributes{dim, reversed}));
}

Op& running_op(std::string_view name, std::string_view doc, const Reducer& reducer) {
  return *register_op({.name = name,
                       .kind = Kind::scan,
                       .operands = 1,
                       .doc = doc,
                       .type_rule = TypeRule::attribute,
                       .reducer = &reducer,
                       .scan = Scan::running,
                       .attribute_words = 2,
                       .gradient = running_gradient});
}

Array cumsum(const Array& x, int dim) { return along(cumsum_op, widened(x), dim, sum_type); }
Array cumprod(const Array& x, int dim) { return along(cumprod_op, widened(x), dim, sum_type); }
Array cummax(const Array& x, int dim) { return extreme_along(cummax_op, x, dim); }
Array cummin(const Array& x, int dim) { return extreme_along(cummin_op, x, dim); }
Array logcumsumexp(const Array& x, int dim) {
  require(logcumsumexp_op, x);
  require_real("logcumsumexp", x);
  return along(logcumsumexp_op, widened(x), dim, [](DType type) { return is_float(type) ? type : DType::Float32; });
}
Array running_product(const Array& x, int dim, bool reversed) { return record_scan(cumprod_op, x, dim, reversed); }

Array product_of_others(const Array& x, int dim) {
  return shifted(running_product(x, dim, false), dim, false, 1) * shifted(running_product(x, dim, true), dim, true, 1);
}

Array recurrence(const Array& a, const Array& b, int dim, bool reversed) {
  const Array* in[] = {&a, &b};
  return record(recurrence_op, in, a.dtype(), a.shape(), Attributes::of(ScanAttributes{dim, reversed}));
}

}  // namespace rosin
