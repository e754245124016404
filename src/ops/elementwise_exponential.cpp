// Powers, roots, exponentials, logarithms. Read first: elementwise_op.hpp, math_exponential.hpp, math_special.hpp.
#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>

#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/complex_forms.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_exponential.hpp"
#include "ops/math_special.hpp"
#include "ops/slopes.hpp"

namespace rosin {
namespace {

constexpr double log_of_two = 0x1.62e42fefa39efp-1, log_of_ten = 0x1.26bb1bbb55516p1,
                 log10_of_two = 0x1.34413509f79ffp-2;

const Op& sqrt_op = elementwise<1>(
                        "sqrt", "square root, NaN below 0; gradient Inf at 0", [](auto x) { return sqrt(x); }, floats)
                        .with_complex(complex_form::sqrt)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient * 0.5 / b.out()); })
                        .samples(0.5, 2)
                        .called(sqrt);

const Op& rsqrt_op = elementwise<1>(
                         "rsqrt", "1/sqrt(x)", [](auto x) { return plain_quotient(lit(x, 1), sqrt(x)); }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient * -0.5 * (b.out() * square(b.out()))); })
                         .samples(0.5, 2)
                         .called(rsqrt);

const Op& cbrt_op =
    elementwise<1>(
        "cbrt", "cube root, of negative numbers too; gradient Inf at 0", [](auto x) { return math::cbrt(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient / (3.0 * square(b.out()))); })
        .samples(0.5, 2)
        .called(cbrt);

const Op& exp_op = elementwise<1>(
                       "exp", "e^x", [](auto x) { return math::exp(x); }, floats)
                       .with_complex(complex_form::exp)
                       .with_gradient([](Backward& b) { b.give(0, b.gradient * b.out()); })
                       .called(exp);

const Op& exp2_op = elementwise<1>(
                        "exp2", "2^x", [](auto x) { return math::exp2(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient * (b.out() * log_of_two)); })
                        .called(exp2);

const Op& expm1_op = elementwise<1>(
                         "expm1", "e^x - 1", [](auto x) { return math::expm1(x); }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient * (b.out() + 1.0)); })
                         .called(expm1);

const Op& log_op = elementwise<1>(
                       "log", "natural logarithm; -Inf at 0, NaN below", [](auto x) { return math::log(x); }, floats)
                       .with_complex(complex_form::log)
                       .with_gradient([](Backward& b) { b.give(0, b.gradient / b.in(0)); })
                       .samples(0.5, 2)
                       .called(log);

const Op& log2_op =
    elementwise<1>(
        "log2", "logarithm of base 2; -Inf at 0, NaN below", [](auto x) { return math::log2(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient / (b.in(0) * log_of_two)); })
        .samples(0.5, 2)
        .called(log2);

const Op& log10_op = elementwise<1>(
                         "log10", "logarithm of base 10; -Inf at 0, NaN below",
                         [](auto x) { return math::log2(x) * log10_of_two; }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient / (b.in(0) * log_of_ten)); })
                         .samples(0.5, 2)
                         .called(log10);

const Op& log1p_op = elementwise<1>(
                         "log1p", "log(1 + x); -Inf at -1, NaN below", [](auto x) { return math::log1p(x); }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient / (b.in(0) + 1.0)); })
                         .samples(-0.5, 2)
                         .called(log1p);

const Op& logaddexp_op = elementwise<2>(
                             "logaddexp", "log(e^x + e^y), without overflow",
                             [](auto x, auto y) {
                               const auto larger = select(x > y, x, y), smaller = select(x > y, y, x);
                               return larger + math::softplus(select(x == y, 0, smaller - larger));
                             },
                             floats)
                             .with_gradient([](Backward& b) {
                               const DType type = b.node().dtype;
                               const Array x = as_computed(b.in(0), type), y = as_computed(b.in(1), type);
                               const Array ahead = where(logical_and(eq(x, y), is_inf(x)), 0, x - y);
                               if (b.needs(0)) b.give(0, b.gradient * sigmoid(ahead));
                               if (b.needs(1)) b.give(1, b.gradient * sigmoid(-ahead));
                             });

const Op& pow_op = elementwise<2>(
                       "pow", "x^y; x^0 and 1^y are 1; gradient 0 by x where y is 0 and by y where x is 0",
                       [](auto x, auto y) { return math::pow(x, y); }, floats)
                       .with_gradient([](Backward& b) {
                         const DType type = b.node().dtype;  // one of the operands may be of integers
                         const Array x = as_computed(b.in(0), type), y = as_computed(b.in(1), type),
                                     one = full(Shape{}, 1.0, type);
                         if (b.needs(0)) b.give(0, b.gradient * (y * pow(x, where(y == 0, one, y - 1.0))));
                         if (b.needs(1)) b.give(1, b.gradient * (b.out() * log(where(x == 0, one, x))));
                       })
                       .samples(0.5, 2);

/// x^n for n >= 1.
Array repeated_product(const Array& x, int64_t n) {
  if (n == 1) return x;
  const Array half = repeated_product(x, n / 2);
  const Array even = square(half);
  return n % 2 == 0 ? even : even * x;
}

/// Beyond it a power is cheaper and rounded less often than the products.
constexpr int64_t longest_product = 16;

}  // namespace

Array sqrt(const Array& x) { return record(sqrt_op, x); }
Array rsqrt(const Array& x) { return record(rsqrt_op, widened(x)); }
Array cbrt(const Array& x) { return record(cbrt_op, x); }
Array exp(const Array& x) { return record(exp_op, widened(x)); }
Array exp2(const Array& x) { return record(exp2_op, widened(x)); }
Array expm1(const Array& x) { return record(expm1_op, widened(x)); }
Array log(const Array& x) { return record(log_op, widened(x)); }
Array log2(const Array& x) { return record(log2_op, widened(x)); }
Array log10(const Array& x) { return record(log10_op, widened(x)); }
Array log1p(const Array& x) { return record(log1p_op, widened(x)); }
Array logaddexp(const Array& x, const Array& y) { return record(logaddexp_op, x, y); }

Array pow(const Array& x, const Array& y) {
  require(pow_op, x);
  require(pow_op, y);
  if (widens(x)) return pow(cast(x, Float32), y);
  if (is_scalar(*y.node()) && !is_float(y.dtype())) {
    const int64_t n = scalar_value(*y.node()).integer;
    if (n == 0 && !is_float(x.dtype())) return ones_like(x);
    if (n >= 1 && (n <= longest_product || !is_float(x.dtype()))) return repeated_product(x, n);
    if (n <= -1 && n >= -longest_product) return reciprocal(repeated_product(x, -n));
  }
  return record(pow_op, x, y);
}

}  // namespace rosin
