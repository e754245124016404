// Running sums and products, and the linear recurrence that their gradients are made of.
#include <algorithm>

#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

Array record_scan(const Op& op, const Array& x, int dim, bool reversed) {
  return record_one(op, x, x.dtype(), x.shape(), Attributes::of(ScanAttributes{dim, reversed}));
}

// What stands at i + 1 (forward) or i - 1 (backward), with `value` where nothing does.
Array shifted(const Array& x, int dim, bool forward, const Array& value) {
  const int64_t size = x.size(dim);
  if (size == 0) return x;
  return forward ? pad(slice(x, dim, 1, size), dim, 0, 1, value) : pad(slice(x, dim, 0, size - 1), dim, 1, 0, value);
}

void sum_gradient(Backward& b);
void product_gradient(Backward& b);
void recurrence_gradient(Backward& b);

const Op& cumsum_op = *register_op({.name = "cumsum",
                                    .kind = Kind::scan,
                                    .operands = 1,
                                    .doc = "running sum along a dim",
                                    .type_rule = TypeRule::attribute,
                                    .reducer = Reducer::sum,
                                    .attribute_words = 2,
                                    .gradient = sum_gradient});
const Op& cumprod_op = *register_op({.name = "cumprod",
                                     .kind = Kind::scan,
                                     .operands = 1,
                                     .doc = "running product along a dim; the gradient holds at zeros",
                                     .type_rule = TypeRule::attribute,
                                     .reducer = Reducer::product,
                                     .attribute_words = 2,
                                     .gradient = product_gradient});
const Op& recurrence_op = *register_op({.name = "recurrence",
                                        .kind = Kind::scan,
                                        .operands = 2,
                                        .doc = "h[i] = a[i] * h[i - 1] + b[i] along a dim",
                                        .attribute_words = 2,
                                        .gradient = recurrence_gradient});

void sum_gradient(Backward& b) {
  const auto [dim, reversed] = b.attributes<ScanAttributes>();
  b.give(0, record_scan(cumsum_op, b.gradient, static_cast<int>(dim), reversed == 0));
}

// y[k] = x[0] ... x[k], so dy[k]/dx[i] = (product before i) * x[i+1] ... x[k]: no division, right at zeros.
void product_gradient(Backward& b) {
  const auto attributes = b.attributes<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  const Array before = shifted(b.out(), dim, reversed, 1);
  const Array after = recurrence(shifted(b.in(0), dim, !reversed, 0), b.gradient, dim, !reversed);
  b.give(0, before * after);
}

void recurrence_gradient(Backward& b) {
  const auto attributes = b.attributes<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  const Array by_b = recurrence(shifted(b.in(0), dim, !reversed, 0), b.gradient, dim, !reversed);
  b.give(1, by_b);
  if (b.needs(0)) b.give(0, by_b * shifted(b.out(), dim, reversed, 0));
}

// Types as in sum.
Array widened(const Op& op, const Array& x) {
  require(op, x);
  const DType type = sum_type(x.dtype());
  return x.dtype() == type ? x : cast(x, type);
}

}  // namespace

Array cumsum(const Array& x, int dim) {
  if (!x.is_nothing() && is_dim_of_one(dim, x.shape())) return reshape(cumsum(reshape(x, {1})), Shape{});
  return record_scan(cumsum_op, widened(cumsum_op, x), checked_dim("cumsum", dim, x.shape()), false);
}

Array cumprod(const Array& x, int dim) {
  if (!x.is_nothing() && is_dim_of_one(dim, x.shape())) return reshape(cumprod(reshape(x, {1})), Shape{});
  return record_scan(cumprod_op, widened(cumprod_op, x), checked_dim("cumprod", dim, x.shape()), false);
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
