// Arithmetic: + - * / and what needs no function of real numbers. Read first: elementwise_op.hpp, math_remainder.hpp.
#include <cmath>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>

#include "graph/integers.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/complex_forms.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_remainder.hpp"

namespace rosin {
namespace {

using scalar::FloatScalar;
using scalar::select;

/// The gradient of steps: 0.
void no_slope(Backward& b) { b.give(0, zeros_like(b.in(0))); }

/// A gradient times x; where all its elements are 1, x itself, which takes no kernel.
Array times(const Array& gradient, const Array& x) { return is_number(gradient, 1) ? x : gradient * x; }

const Op& add_op = elementwise<2>(
                       "add", "a + b; integers wrap around", [](auto a, auto b) { return a + b; }, numbers)
                       .with_complex(complex_form::add)
                       .with_arithmetic_gradient([](Backward& b) {
                         b.give(0, b.gradient);
                         b.give(1, b.gradient);
                       });

const Op& sub_op = elementwise<2>(
                       "sub", "a - b; integers wrap around", [](auto a, auto b) { return a - b; }, numbers)
                       .with_complex(complex_form::sub)
                       .with_arithmetic_gradient([](Backward& b) {
                         b.give(0, b.gradient);
                         if (b.needs(1)) b.give(1, -b.gradient);
                       });

const Op& mul_op = elementwise<2>(
                       "mul", "a * b; integers wrap around", [](auto a, auto b) { return a * b; }, numbers)
                       .with_complex(complex_form::mul)
                       .with_arithmetic_gradient([](Backward& b) {
                         if (b.needs(0)) b.give(0, times(b.gradient, b.in(1)));
                         if (b.needs(1)) b.give(1, times(b.gradient, b.in(0)));
                       });

const Op& div_op = elementwise<2>(
                       "div", "a / b; integers give Float32", [](auto a, auto b) { return quotient(a, b); }, floats)
                       .with_complex(complex_form::div)
                       .with_arithmetic_gradient([](Backward& b) {
                         const Array by_a = b.gradient / b.in(1);
                         b.give(0, by_a);
                         if (b.needs(1)) b.give(1, -(by_a * b.out()));
                       })
                       .samples(0.5, 2);

const Op& neg_op = elementwise<1>(
                       "neg", "-x", [](auto x) { return -x; }, numbers)
                       .with_complex(complex_form::neg)
                       .with_arithmetic_gradient([](Backward& b) { b.give(0, -b.gradient); })
                       .called(neg);

const Op& square_op = elementwise<1>(
                          "square", "x*x", [](auto x) { return x * x; }, numbers)
                          .with_complex(complex_form::square)
                          // What is of x first: a gradient that is one number a row joins x's kernel.
                          .with_arithmetic_gradient([](Backward& b) { b.give(0, b.gradient * (b.in(0) * 2.0)); })
                          .called(square);

const Op& reciprocal_op = elementwise<1>(
                              "reciprocal", "1/x", [](auto x) { return 1 / x; }, floats)
                              .with_complex(complex_form::reciprocal)
                              .with_arithmetic_gradient([](Backward& b) { b.give(0, -(b.gradient * square(b.out()))); })
                              .samples(0.5, 2)
                              .called(reciprocal);

const Op& mod_op =
    elementwise<2>(
        "mod",
        "a - b*floor(a/b), with the sign of b; 0 for integers where b is 0; exact, of Float64 while |a/b| < 2^52",
        [](auto a, auto b) { return math::mod(a, b); }, numbers)
        .with_gradient([](Backward& b) {
          b.give(0, b.gradient);
          if (b.needs(1)) b.give(1, -(b.gradient * floor(b.in(0) / b.in(1))));
        })
        .samples(0.25, 0.75);

const Op& floor_divide_op =
    elementwise<2>(
        "floor_divide", "floor(a/b), the quotient to the remainder mod; 0 for integers where b is 0; gradient 0",
        [](auto a, auto b) { return math::floor_divide(a, b); }, numbers)
        .with_gradient([](Backward& b) {
          for (int i = 0; i < 2; ++i) {
            if (b.needs(i)) b.give(i, zeros_like(b.in(i)));
          }
        })
        .samples(0.25, 0.75);

const Op& abs_op = elementwise<1>(
                       "abs", "|x|; gradient 0 at 0", [](auto x) { return abs(x); }, numbers)
                       .with_complex(complex_form::abs)
                       .with_arithmetic_gradient([](Backward& b) { b.give(0, b.gradient * sign(b.in(0))); })
                       .samples(0.5, 2)
                       .called(abs);

const Op& sign_op =
    elementwise<1>(
        "sign", "-1, 0 or 1; NaN stays; gradient 0",
        [](auto x) { return select(x > 0, 1, select(x < 0, lit(x, -1), select(x == 0, 0, x))); }, numbers)
        .with_gradient(no_slope)
        .samples(0.5, 2)
        .called(sign);

const Op& max_op =
    elementwise<2>(
        "max", "the higher; NaN wins; ties share the gradient", [](auto a, auto b) { return max(a, b); }, numbers)
        .with_gradient([](Backward& b) {
          const Array share = where(b.in(0) == b.in(1), b.gradient * 0.5, b.gradient);
          if (b.needs(0)) b.give(0, where(b.in(0) < b.in(1), 0.0, share));
          if (b.needs(1)) b.give(1, where(b.in(1) < b.in(0), 0.0, share));
        });

const Op& min_op =
    elementwise<2>(
        "min", "the lower; NaN wins; ties share the gradient", [](auto a, auto b) { return min(a, b); }, numbers)
        .with_gradient([](Backward& b) {
          const Array share = where(b.in(0) == b.in(1), b.gradient * 0.5, b.gradient);
          if (b.needs(0)) b.give(0, where(b.in(1) < b.in(0), 0.0, share));
          if (b.needs(1)) b.give(1, where(b.in(0) < b.in(1), 0.0, share));
        });

const Op& clamp_op = elementwise<3>(
                         "clamp", "x between low and high; gradient 1 inside and at the bounds",
                         [](auto x, auto low, auto high) {
                           const auto above = select(x < low, low, x);
                           return select(above > high, high, above);
                         },
                         numbers)
                         .with_gradient([](Backward& b) {
                           const Array inside = (b.in(0) >= b.in(1)) & (b.in(0) <= b.in(2));
                           if (b.needs(0)) b.give(0, where(inside, b.gradient, 0.0));
                           const Array above = max(b.in(0), b.in(1)) > b.in(2);
                           if (b.needs(1)) b.give(1, where((b.in(0) < b.in(1)) & !above, b.gradient, 0.0));
                           if (b.needs(2)) b.give(2, where(above, b.gradient, 0.0));
                         });

const Op& floor_op = elementwise<1>(
                         "floor", "the largest integer not above x; gradient 0",
                         [](auto x) {
                           if constexpr (FloatScalar<decltype(x)>) return floor(x);
                           else return x;
                         },
                         numbers)
                         .with_gradient(no_slope)
                         .samples(0.25, 0.75)
                         .called(floor);

const Op& ceil_op = elementwise<1>(
                        "ceil", "the smallest integer not below x; gradient 0",
                        [](auto x) {
                          if constexpr (FloatScalar<decltype(x)>) return ceil(x);
                          else return x;
                        },
                        numbers)
                        .with_gradient(no_slope)
                        .samples(0.25, 0.75)
                        .called(ceil);

const Op& trunc_op = elementwise<1>(
                         "trunc", "x without its fraction; gradient 0",
                         [](auto x) {
                           if constexpr (FloatScalar<decltype(x)>) return trunc(x);
                           else return x;
                         },
                         numbers)
                         .with_gradient(no_slope)
                         .samples(0.25, 0.75)
                         .called(trunc);

const Op& round_op = elementwise<1>(
                         "round", "the nearest integer, halves to even; gradient 0",
                         [](auto x) {
                           if constexpr (FloatScalar<decltype(x)>) return round_even(x);
                           else return x;
                         },
                         numbers)
                         .with_gradient(no_slope)
                         .samples(0.55, 1.45)
                         .called(round);

}  // namespace

Array operator+(const Array& a, const Array& b) { return record(add_op, a, b); }
Array operator-(const Array& a, const Array& b) { return record(sub_op, a, b); }
Array operator*(const Array& a, const Array& b) { return record(mul_op, a, b); }
Array operator/(const Array& a, const Array& b) { return record(div_op, a, b); }
Array operator-(const Array& x) { return record(neg_op, x); }
Array& operator+=(Array& a, const Array& b) { return a = a + b; }
Array& operator-=(Array& a, const Array& b) { return a = a - b; }
Array& operator*=(Array& a, const Array& b) { return a = a * b; }
Array& operator/=(Array& a, const Array& b) { return a = a / b; }
Array add(const Array& a, const Array& b) { return record(add_op, a, b); }
Array sub(const Array& a, const Array& b) { return record(sub_op, a, b); }
Array mul(const Array& a, const Array& b) { return record(mul_op, a, b); }
Array div(const Array& a, const Array& b) { return record(div_op, a, b); }
Array neg(const Array& x) { return record(neg_op, x); }
Array square(const Array& x) { return record(square_op, x); }
Array reciprocal(const Array& x) { return record(reciprocal_op, widened(x)); }
Array mod(const Array& a, const Array& b) { return record(mod_op, a, b); }
Array abs(const Array& x) { return record(abs_op, x); }
Array sign(const Array& x) { return record(sign_op, x); }
Array floor(const Array& x) { return record(floor_op, x); }
Array ceil(const Array& x) { return record(ceil_op, x); }
Array trunc(const Array& x) { return record(trunc_op, x); }
Array round(const Array& x) { return record(round_op, x); }
Array max(const Array& a, const Array& b) { return record(max_op, a, b); }
Array min(const Array& a, const Array& b) { return record(min_op, a, b); }
Array floor_divide(const Array& a, const Array& b) { return record(floor_divide_op, a, b); }

namespace {

/// The bound of a clamp as a number: whole bounds of integers are integers, moved into the type's range.
Array bound_for(const Array& x, double bound) {
  const DType type = x.dtype() == Bool ? Int32 : x.dtype();
  if (!is_integer(type) || bound != std::trunc(bound)) return bound;
  const IntegerBounds range = bounds_of(type);
  if (bound >= static_cast<double>(range.highest)) return range.highest;
  return bound <= static_cast<double>(range.lowest) ? Array(range.lowest)
         : bound < 0                                ? Array(static_cast<int64_t>(bound))
                                                    : Array(static_cast<uint64_t>(bound));
}

/// x where it is beyond the bound on the right side, or NaN; else the bound.
Array bounded(const Array& x, const Array& beyond, const Array& bound) { return where(beyond | ne(x, x), x, bound); }

}  // namespace

Array clamp(const Array& x, double low, double high) {
  require(clamp_op, x);
  return record(clamp_op, x, bound_for(x, low), bound_for(x, high));
}

Array clamp(const Array& x, const Array& low, const Array& high) {
  for (const Array* operand : {&x, &low, &high}) require(clamp_op, *operand);
  const Array raised = bounded(x, ge(x, low), low);
  return bounded(raised, le(raised, high), high);
}

}  // namespace rosin
