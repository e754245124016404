// Roots, powers, the error function and the gamma function's family, as generic bodies without branches. Float32 goes
// through Float64 for cbrt, pow and the gamma family. Read first: math_exponential.hpp, math_trigonometric.hpp.
#pragma once

#include "ops/math_exponential.hpp"
#include "ops/math_trigonometric.hpp"

namespace rosin::math {

template <FloatScalar X> [[gnu::always_inline]] inline X cbrt(X x) {
  if constexpr (is_double<X>) {
    const X a = abs(x);
    const auto tiny = a < least_normal(x);
    const X normal = select(tiny, a * 0x1p54, a);
    // a = 2^(3k) * m, m in [1/2, 4): the exponent e as a float by its bits, k = round(e/3).
    const auto bits = bits_of(normal);
    const X e = float_of_bits(shift_right_zero(bits, 52) | 0x4330000000000000LL) - (0x1p52 + 1023);
    const X shift = rounding_shift(x);
    const X sum = e * (1.0 / 3) + shift;
    const auto k = bits_of(sum) - bits_of(shift);
    const X m = float_of_bits(bits - ((k * 3) << 52));
    X y = polynomial(m, 0.482915114989, 0.775941216088, -0.355959150189, 0.115890796117, -0.020279205113,
                     0.00143634521092);
    for (int step = 0; step < 2; ++step) {  // Halley
      const X cube = y * y * y;
      y = y - y * ((cube - m) / (2 * cube + m));
    }
    const X root = y * power_of_two(k) * select(tiny, 0x1p-18, lit(x, 1));
    return select((a < infinity(x)) & (a > 0), with_sign_of(root, x), x);
  } else {
    return narrowed<X>(cbrt(convert<double>(x)));
  }
}

/// exp(-scale*a*a) for a >= 0; the rounding of the square does not count.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_of_square(X a, double scale) {
  const X high = float_of_bits(bits_of(a) & (is_double<X> ? -0x8000000LL : -0x1000LL));
  const X rest = (a - high) * (a + high) * scale;
  return falling_exp(high * high * scale) * (1 + exp_tail(-rest));
}

/// erfc(a) * exp(a*a) for a >= 1/2: with r = 1/(a + 2) a polynomial in 1 - 4r.
template <FloatScalar X> [[gnu::always_inline]] inline X erfc_scaled(X a) {
  const X r = 1 / (a + 2);
  const X t = (a - 2) * r;
  if constexpr (is_double<X>) {
    return r * polynomial(
                   t, 1.02158270524202297, -0.687160684413810484, 0.279472092556058106, -0.0364422315068980169,
                   -0.0215106618897685019, 0.00647918506879521291, 0.00309061206822931197, -0.000837296090445854881,
                   -0.000663073648617080001, 0.00003437185389022466, 0.000144472002147886928, 0.000034145085060989841,
                   -0.0000217023862105868344, -0.0000160989578422237471, -1.11038141770220564e-6,
                   3.56389538139733919e-6, 1.99773031837015612e-6, 1.78972411177381615e-7, -6.44199423178220398e-7,
                   -5.39145529331564172e-7, 1.68877877808505874e-7, 2.13300673363847483e-7, -8.04839383675813812e-8);
  } else {
    return r * polynomial(t, 1.021582707, -0.6871606205, 0.2794718522, -0.03644454872, -0.02150586462, 0.006501914464,
                          0.003054587781, -0.0009217352971, -0.0005460659708, 0.0001498146127);
  }
}

/// erf(x)/x - 1, where z = x*x <= 1.
template <FloatScalar X> [[gnu::always_inline]] inline X erf_tail(X z) {
  if constexpr (is_double<X>) {
    return polynomial(z, 0.12837916709551257, -0.376126389031837481, 0.112837916709548787, -0.0268661706450767932,
                      0.00522397762481801447, -0.000854832698083378991, 0.000120553311116427109,
                      -0.0000149255952668311816, 1.6461000484121368e-6, -1.6350312701054695e-7, 1.46597752740474358e-8,
                      -1.13728488567916737e-9, 5.9571761477489114e-11);
  } else {
    return polynomial(z, 0.128379166, -0.3761262667, 0.1128359472, -0.02685421201, 0.005189087423, -0.0008016864287,
                      7.875875063e-5);
  }
}

template <FloatScalar X> [[gnu::always_inline]] inline X erf(X x) {
  const X a = abs(x);
  const X inside = select(a > 6.5, 6.5, a);
  const X far = 1 - erfc_scaled(inside) * falling_exp(inside * inside);
  return select(a > 1, with_sign_of(far, x), x + x * erf_tail(x * x));  // NaN takes the polynomial
}

/// The standard normal distribution function, accurate in the lower tail too.
template <FloatScalar X> [[gnu::always_inline]] inline X normal_below(X x) {
  constexpr double root_half = 0x1.6a09e667f3bcdp-1;
  constexpr double limit = is_double<X> ? 39 : 15;
  const X a = abs(x);
  const X inside = select(a > limit, limit, a);
  const X tail = 0.5 * erfc_scaled(inside * root_half) * exp_of_square(inside, 0.5);
  const X far = select(x < 0, tail, 1 - tail);
  const X t = x * root_half;
  return select(a > 0.7072, far, 0.5 + 0.5 * (t + t * erf_tail(t * t)));
}

/// A number as the sum of two, the first with 21 significant bits (Float64).
template <FloatScalar X> [[gnu::always_inline]] inline X leading_bits(X x) {
  return float_of_bits(bits_of(x) & -0x100000000LL);
}

/// a^y for 0 < a < Inf in Float64: the logarithm and its product with y in two parts each.
template <FloatScalar X> [[gnu::always_inline]] inline X positive_power(X a, X y) {
  const auto parts = log_parts(a);
  const X f = parts.f, d = 2 + f;
  const X s = leading_bits(f / d), d_high = leading_bits(d), d_low = (d - d_high) + (f - (d - 2));
  const X s_low = ((f - s * d_high) - s * d_low) / d;
  const X z = (s + s_low) * (s + s_low);
  const X cubic = (s + s_low) * z * log_cubic(z);
  const X whole = parts.n * 0x1.62e42ffp-1;  // ln 2 in two parts
  const X sum = whole + 2 * s;
  const X low = (2 * s - (sum - whole)) + (cubic + 2 * s_low - parts.n * 0x1.718432a1b0e26p-35);
  const X log_high = leading_bits(sum), log_low = (sum - log_high) + low;
  const X y_high = leading_bits(y);
  const X high = y_high * log_high;
  const X rest = y * log_low + (y - y_high) * log_high;
  const X logarithm = high + rest;
  const auto e = exp_parts(logarithm);
  const X r = ((high - e.n * 0x1.62e42fefa2p-1) + rest) - e.n * 0x1.9ef35793c7673p-41;
  return exp_edges(logarithm, scaled(1 + exp_tail(r), e.exponent), exp_lowest<X>, exp_highest<X>);
}

/// What x^y is rounded to: Float32 needs no logarithm of more than Float64.
enum class Precision : uint8_t { narrow, full };

/// x^y in Float64.
template <Precision precision, FloatScalar X> [[gnu::always_inline]] inline X wide_pow(X x, X y) {
  const X a = abs(x);
  // Beyond 2^70 an exponent gives nothing but 0, 1 and Inf.
  const X below = select(y > 0x1p70, 0x1p70, y);
  const X exponent = select(below < -0x1p70, -0x1p70, below);
  const X core =
      precision == Precision::full ? positive_power(a, exponent) : exp(exponent * log_sum(log_parts(a), lit(a, 0)));
  // At 0 and Inf: |x|^y is the like end for positive y, the other one for negative y.
  const X end = select(y > 0, a, select(a == 0, infinity(x), 0));
  const X magnitude = select(a == 1, 1, select(a == 0, end, select(a == infinity(x), end, core)));
  const X whole = trunc(exponent), half = exponent * 0.5;
  const auto even = trunc(half) == half;
  const X with_sign = select(even, magnitude, with_sign_of(magnitude, x));
  // A broken exponent: NaN below 0, no sign at -0 and -Inf.
  const X root = select(a == 0, magnitude, select(a == infinity(x), magnitude, select(x < 0, quiet_nan(x), magnitude)));
  const X value = select(whole == exponent, with_sign, root);
  const X with_nan = select(is_nan(x), x, select(is_nan(y), y, value));
  return select(y == 0, 1, select(x == 1, 1, with_nan));
}

template <FloatScalar X> [[gnu::always_inline]] inline X pow(X x, X y) {
  if constexpr (is_double<X>) return wide_pow<Precision::full>(x, y);
  else return narrowed<X>(wide_pow<Precision::narrow>(convert<double>(x), convert<double>(y)));
}

}  // namespace rosin::math
