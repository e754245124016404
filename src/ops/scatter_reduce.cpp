// Scatters that multiply, take extrema or means; see rosin/index.hpp. Gradients go by what stands in the result.
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>

#include "graph/recording_site.hpp"
#include "graph/refuse_type.hpp"
#include "ops/reducers.hpp"
#include "ops/reduction.hpp"
#include "ops/scattered.hpp"

namespace rosin {
namespace {

int dim_of(const Backward& b) { return static_cast<int>(b.attributes<DimAttributes>().dim); }

const Op& combining_op(std::string_view name, std::string_view doc, const Reducer& reducer, GradientRule gradient) {
  return *register_op({.name = name,
                       .kind = Kind::scatter,
                       .operands = 3,
                       .doc = doc,
                       .type_rule = TypeRule::attribute,
                       .reducer = &reducer,
                       .scatter = Scatter::combine,
                       .attribute_words = 1,
                       .gradient = gradient});
}

/// Elements that tie share.
void extremum_gradient(Backward& b) {
  const SameSite site(b.node());
  const int dim = dim_of(b);
  const Array y = b.out(), target = b.in(0), indices = b.in(1), updates = b.in(2);
  const Array stays = cast(eq(target, y), y.dtype()), taken = cast(eq(updates, gather(y, indices, dim)), y.dtype());
  const Array count = scatter_add(stays, indices, taken, dim);
  const Array share = b.gradient / where(eq(count, 0), 1, count);  // none where the result is NaN
  b.give(0, share * stays);
  if (b.needs(2)) b.give(2, gather(share, indices, dim) * taken);
}

const Op& scatter_max_op =
    combining_op("scatter_max", "the larger of operand 0 and of operand 2 at indices along a dim", maximum_reducer,
                 extremum_gradient);
const Op& scatter_min_op =
    combining_op("scatter_min", "the smaller of operand 0 and of operand 2 at indices along a dim", minimum_reducer,
                 extremum_gradient);

/// x, and 1 where it is 0.
Array without_zeros(const Array& x) { return where(eq(x, 0), 1, x); }

/// What the factors of each product are beside those that are not 0.
struct Zeros {
  Array count;  // how many factors are 0
  Array sum;    // of those; 0, but with their slopes
};

/// Each factor's slope is the product of the others: that of all which are not 0 over the factor itself, where no other
/// one is 0. Where one other is 0 the slope is that product times the 0, which gradients of the slope go through.
Array others_product(const Array& x, const Array& product, const Zeros& zeros) {
  const Array is_zero = eq(x, 0), others = product / without_zeros(x);
  const Array left = zeros.count - cast(is_zero, x.dtype());
  const Array only_zero = others * (zeros.sum - where(is_zero, x, 0));
  return where(eq(left, 0), others, where(eq(left, 1), only_zero, 0));
}

void product_gradient(Backward& b) {
  const SameSite site(b.node());
  const int dim = dim_of(b);
  const Array target = b.in(0), indices = b.in(1), updates = b.in(2);
  const auto gathered = [&](const Array& x) { return gather(x, indices, dim); };
  const auto added = [&](const auto& of) { return scatter_add(of(target), indices, of(updates), dim); };
  const Zeros zeros{added([](const Array& x) { return cast(eq(x, 0), x.dtype()); }),
                    added([](const Array& x) { return where(eq(x, 0), x, 0); })};
  const Array product = scatter_mul(without_zeros(target), indices, without_zeros(updates), dim);
  b.give(0, b.gradient * others_product(target, product, zeros));
  if (!b.needs(2)) return;
  const Zeros there{gathered(zeros.count), gathered(zeros.sum)};
  b.give(2, gathered(b.gradient) * others_product(updates, gathered(product), there));
}

const Op& scatter_mul_op =
    combining_op("scatter_mul", "operand 0 times operand 2 at indices along a dim, in their order", product_reducer,
                 product_gradient);

/// The type that elements of `type` are combined in.
DType wide_type(DType type) {
  if (type == Float16 || type == BFloat16) return Float32;
  return is_integer(type) && size_of(type) < 4 ? Int32 : type;
}

Array combined(const Op& op, const Array& target, const Array& indices, const Array& updates, int dim) {
  require_numbers(op, target);
  require_real(op.name, target);
  require(op, updates);
  require_real(op.name, updates);
  const Array* both[] = {&target, &updates};
  const DType type = common_type(op, both), wide = wide_type(type);
  if (wide == type) return scattered(op, target, indices, updates, dim);
  return cast(scattered(op, cast(target, wide), indices, cast(updates, wide), dim), type);
}

}  // namespace

Array scatter_mul(const Array& target, const Array& indices, const Array& updates, int dim) {
  return combined(scatter_mul_op, target, indices, updates, dim);
}

Array scatter_max(const Array& target, const Array& indices, const Array& updates, int dim) {
  return combined(scatter_max_op, target, indices, updates, dim);
}

Array scatter_min(const Array& target, const Array& indices, const Array& updates, int dim) {
  return combined(scatter_min_op, target, indices, updates, dim);
}

Array scatter_mean(const Array& target, const Array& indices, const Array& updates, int dim, bool include_target) {
  require(scatter_max_op, target);
  require_real("scatter_mean", target);
  require_real("scatter_mean", updates);
  const auto in_float = [](const Array& x) { return wide(is_float(x.dtype()) ? x : cast(x, Float32)); };
  const Array base = in_float(target), values = in_float(updates);
  const Array total = scatter_add(include_target ? base : zeros_like(base), indices, values, dim);
  const Array each = include_target ? ones_like(total) : zeros_like(total);
  const Array count = scatter_add(each, indices, cast(ones_like(values), total.dtype()), dim);
  const Array mean = include_target ? total / count : where(eq(count, 0), base, total / where(eq(count, 0), 1, count));
  return narrow(mean, target);
}

}  // namespace rosin
