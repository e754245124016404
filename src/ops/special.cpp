// Special functions beside those of elementwise_trigonometric.cpp. Read first: elementwise_op.hpp, math_erfinv.hpp,
// math_bessel.hpp. Read next: special_forms.cpp (those made of others).
#include <rosin/special.hpp>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_bessel.hpp"
#include "ops/math_erfinv.hpp"
#include "ops/math_special.hpp"
#include "ops/slopes.hpp"

namespace rosin {
namespace {

constexpr double half_root_pi = 0.886226925452758, two_over_root_pi = 1.1283791670955126;

const Op& erfinv_op =
    elementwise<1>(
        "erfinv", "the inverse of erf; -Inf and Inf at -1 and 1, NaN outside",
        [](auto x) __attribute__((always_inline)) { return math::erfinv(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (half_root_pi * exp(square(b.out())))); })
        .samples(-0.9, 0.9)
        .called(erfinv);

const Op& erfc_op =
    elementwise<1>(
        "erfc", "1 - erf(x)", [](auto x) __attribute__((always_inline)) { return math::erfc(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (-two_over_root_pi * exp(-square(b.in(0))))); })
        .called(erfc);

const Op& i0_op = elementwise<1>(
                      "i0", "the modified Bessel function of order 0",
                      [](auto x) __attribute__((always_inline)) { return math::i0(x); }, floats)
                      .with_gradient([](Backward& b) { b.give(0, b.gradient * i1(b.in(0))); })
                      .called(i0);

const Op& i0e_op =
    elementwise<1>(
        "i0e", "i0(x) / e^|x|", [](auto x) __attribute__((always_inline)) { return math::i0e(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (i1e(b.in(0)) - sign(b.in(0)) * b.out())); })
        .called(i0e);

/// y/x for y = i1(x): where x is small by its series, so that its slopes hold there too.
Array i1_over_argument(const Array& y, const Array& x, const Array& scale) {
  const Array near = lt(abs(x), 0.1), squares = square(x);
  const Array tail = (1.0 / 16 + squares * (1.0 / 384 + squares * (1.0 / 18432))) * squares;
  return where(near, (0.5 + tail) * scale, y / where(near, 1, x));
}

const Op& i1_op = elementwise<1>(
                      "i1", "the modified Bessel function of order 1",
                      [](auto x) __attribute__((always_inline)) { return math::i1(x); }, floats)
                      .with_gradient([](Backward& b) {
                        b.give(0, b.gradient * (i0(b.in(0)) - i1_over_argument(b.out(), b.in(0), 1)));
                      })
                      .called(i1);

const Op& i1e_op =
    elementwise<1>(
        "i1e", "i1(x) / e^|x|", [](auto x) __attribute__((always_inline)) { return math::i1e(x); }, floats)
        .with_gradient([](Backward& b) {
          const Array x = b.in(0), ratio = i1_over_argument(b.out(), x, exp(-abs(x)));
          b.give(0, b.gradient * (i0e(x) - ratio - sign(x) * b.out()));
        })
        .called(i1e);

const Op& hypot_op = elementwise<2>(
                         "hypot", "sqrt(x*x + y*y); Inf where one is infinite; gradient 0 at (0, 0)",
                         [](auto x, auto y) { return math::hypot(x, y); }, floats)
                         .with_gradient([](Backward& b) {
                           const DType type = b.node().dtype;
                           const Array scaled = b.gradient / where(eq(b.out(), 0), 1, b.out());
                           if (b.needs(0)) b.give(0, scaled * as_computed(b.in(0), type));
                           if (b.needs(1)) b.give(1, scaled * as_computed(b.in(1), type));
                         })
                         .samples(0.5, 2);

const Op& copysign_op =
    elementwise<2>(
        "copysign", "|x| with the sign of y", [](auto x, auto y) { return scalar::with_sign_of(x, y); }, floats)
        .with_gradient([](Backward& b) {
          if (b.needs(0)) b.give(0, b.gradient * (sign(b.in(0)) * sign(b.out())));
          if (b.needs(1)) b.give(1, zeros_like(b.gradient));
        })
        .samples(0.5, 2);

const Op& signbit_op =
    elementwise<1>(
        "signbit", "whether the sign is a minus", [](auto x) { return scalar::bits_of(x) < 0; }, floats)
        .called(signbit);

}  // namespace

Array erfinv(const Array& x) { return record(erfinv_op, widened(x)); }
Array erfc(const Array& x) { return record(erfc_op, x); }
Array i0(const Array& x) { return record(i0_op, x); }
Array i0e(const Array& x) { return record(i0e_op, x); }
Array i1(const Array& x) { return record(i1_op, x); }
Array i1e(const Array& x) { return record(i1e_op, x); }
Array hypot(const Array& x, const Array& y) { return record(hypot_op, x, y); }
Array copysign(const Array& x, const Array& y) { return record(copysign_op, x, y); }
Array signbit(const Array& x) {
  const bool whole = !x.is_nothing() && !is_float(x.dtype()) && !is_complex(x.dtype());
  return whole ? lt(x, 0) : record(signbit_op, x);
}

}  // namespace rosin
