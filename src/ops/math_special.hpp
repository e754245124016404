// Roots, powers and the error function, as generic bodies without branches.
// Read first: math_exponential.hpp, math_trigonometric.hpp.
#pragma once

#include "ops/math_exponential.hpp"
#include "ops/math_trigonometric.hpp"

namespace rosin::math {

template <FloatScalar X> [[gnu::always_inline]] inline X cbrt(X x) {
  constexpr int digits = mantissa_bits<X>;
  constexpr double one_above = is_double<X> ? 0x1p54 : 0x1p24, root_of_it = is_double<X> ? 0x1p18 : 0x1p8;
  const X a = abs(x);
  const auto tiny = a < least_normal(x);
  const X normal = select(tiny, a * one_above, a);
  // a = 2^(3k) * m, m in [1/2, 4): the exponent e as a float by its bits, k = round(e/3).
  const auto bits = bits_of(normal);
  const X unit = first_without_fraction(x);
  const X e = float_of_bits(shift_right_zero(bits, digits) | bits_of(unit)) - (unit + exponent_bias<X>);
  const X shift = rounding_shift(x);
  const X sum = e * (1.0 / 3) + shift;
  const auto k = bits_of(sum) - bits_of(shift);
  const X m = float_of_bits(bits - ((k * 3) << digits));
  X y =
      polynomial(m, 0.482915114989, 0.775941216088, -0.355959150189, 0.115890796117, -0.020279205113, 0.00143634521092);
  for (int step = 0; step < 2; ++step) {  // Halley
    const X cube = y * y * y;
    y = y - y * ((cube - m) / (2 * cube + m));
  }
  const X root = y * power_of_two(k) * select(tiny, 1 / root_of_it, lit(x, 1));
  return select((a < infinity(x)) & (a > 0), with_sign_of(root, x), x);
}

/// exp(-scale*a*a) for a >= 0; the rounding of the square does not count, and is so small that its exponential is 1 and
/// itself.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_of_square(X a, double scale) {
  const X square = a * a, rest = fma(a, a, -square), rounded = falling_exp(square * scale);
  return fma(rounded, rest * -scale, rounded);
}

/// erfc(a) * exp(a*a) for a from 0 (Float64: 1/2) to 11 (28): with r = 1/(a + 2) a polynomial in 1 - 4r.
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
    return r * polynomial(t, 1.021582709, -0.6871606881, 0.2794717182, -0.03644204988, -0.02150516014, 0.006478088682,
                          0.003061148467, -0.0008390147508, -0.0005933065417, 5.429408264e-5, 7.352873427e-5);
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

/// -log(erfc(a)) for a from 1 to 4, as close as erf needs it: the error counts times erfc(a).
template <FloatScalar X> [[gnu::always_inline]] inline X erfc_exponent(X a) {
  return polynomial(a, 0.0003537141858, 1.127040057, 0.638225644, 0.1030373966, -0.02180533117, 0.002939610397,
                    -0.0001855743136);
}

template <FloatScalar X> [[gnu::always_inline]] inline X erf(X x) {
  constexpr double limit = is_double<X> ? 6.5 : 4;  // from there on it is 1
  const X a = abs(x), inside = select(a > limit, limit, a);
  X far = lit(x, 1);
  if constexpr (is_double<X>) far = far - erfc_scaled(inside) * falling_exp(inside * inside);
  else far = far - falling_exp(erfc_exponent(inside));
  return select(a > 1, with_sign_of(far, x), x + x * erf_tail(x * x));  // NaN takes the polynomial
}

/// 1 - erf(x), accurate where that is small.
template <FloatScalar X> [[gnu::always_inline]] inline X erfc(X x) {
  constexpr double limit = is_double<X> ? 28 : 11;
  const X a = abs(x);
  const X inside = select(a > limit, limit, a);
  const X tail = erfc_scaled(inside) * exp_of_square(inside, 1);
  if constexpr (!is_double<X>) return select(x < 0, 2 - tail, tail);
  return select(a > 0.5, select(x < 0, 2 - tail, tail), 1 - (x + x * erf_tail(x * x)));  // NaN takes the polynomial
}

/// sqrt(x*x + y*y), without overflow before its time; Inf where one is infinite.
template <FloatScalar X> [[gnu::always_inline]] inline X hypot(X x, X y) {
  const X a = abs(x), b = abs(y);
  const X high = select(a > b, a, b), low = select(a > b, b, a);
  const X ratio = low / select(high == 0, 1, high);
  const X length = high * sqrt(1 + ratio * ratio);
  return select((a == infinity(x)) | (b == infinity(x)), infinity(x), length);
}

/// The standard normal distribution function, accurate in the lower tail too.
template <FloatScalar X> [[gnu::always_inline]] inline X normal_below(X x) {
  constexpr double root_half = 0x1.6a09e667f3bcdp-1;
  constexpr double limit = is_double<X> ? 39 : 15;
  const X a = abs(x);
  const X inside = select(a > limit, limit, a);
  const X tail = 0.5 * erfc_scaled(inside * root_half) * exp_of_square(inside, 0.5);
  const X far = select(x < 0, tail, 1 - tail);
  if constexpr (!is_double<X>) return far;
  const X t = x * root_half;
  return select(a > 0.7072, far, 0.5 + 0.5 * (t + t * erf_tail(t * t)));
}

/// The leading bits of a number: 21 of a Float64, 12 of a Float32. Products of two such numbers are exact.
template <FloatScalar X> [[gnu::always_inline]] inline X leading_bits(X x) {
  return float_of_bits(bits_of(x) & (is_double<X> ? -0x100000000LL : -0x1000LL));
}

/// log((1 + s)/(1 - s)) - 2s, where s is a sum and s.high has leading bits only.
template <FloatScalar X> [[gnu::always_inline]] inline Sum<X> log_beyond_line(Sum<X> s) {
  // s * (2/3*z + z^2*c(z)), z = s^2: 11/16 of the first bits of z make an exact product, the rest is small beside it.
  const X whole = rounded(s), z = whole * whole, square = s.high * s.high;
  const X first = float_of_bits(bits_of(square) & (is_double<X> ? -0x1000000000LL : -0x10000LL));
  const X high = first * (11.0 / 16), others = z * z * log_quintic(z) - first * (1.0 / 48);
  const X low = ((square - first) + s.low * (s.high + whole)) * (2.0 / 3) + others;
  return {s.high * high, s.high * low + s.low * (high + low)};
}

/// log(a) for 0 < a < Inf.
template <FloatScalar X> [[gnu::always_inline]] inline Sum<X> log_in_parts(X a) {
  round_each_step(a);
  const auto parts = log_parts(a);
  const X f = parts.f, d = 2 + f;
  const X s = leading_bits(f / d), d_high = leading_bits(d), d_low = (d - d_high) + (f - (d - 2));
  const X s_low = ((f - s * d_high) - s * d_low) / d;
  const auto beyond = log_beyond_line<X>({s, s_low});
  const X whole = parts.n * log_of_two_high<X>, whole_low = parts.n * log_of_two_low<X>;
  const X sum = whole + 2 * s;
  const X lost = 2 * s - (sum - whole);
  const X high = sum + beyond.high;
  return {high, lost + ((beyond.high - (high - sum)) + (beyond.low + 2 * s_low + whole_low))};
}

/// a^y for 0 < a < Inf: the logarithm and its product with y in two parts each.
template <FloatScalar X> [[gnu::always_inline]] inline X positive_power(X a, X y) {
  const auto log = log_in_parts(a);
  const X log_high = leading_bits(log.high), log_low = (log.high - log_high) + log.low;
  const X y_high = leading_bits(y);
  const X high = y_high * log_high;
  const X rest = y * log_low + (y - y_high) * log_high;
  const X logarithm = high + rest;
  const auto e = exp_parts(logarithm);
  // What is left of it, and 1 more, in two parts too: powers that are numbers of this type come out as these.
  const X near = high - e.n * log_of_two_high<X>, correction = rest - e.n * log_of_two_low<X>;
  const X r = near + correction, above = 1 + r;
  const X lost = ((near - r) + correction) + ((1 - above) + r);
  const X value = above + (exp_beyond_line(r) + lost);
  const X inside = select(logarithm > exp_highest<X>, infinity(a), scaled(value, e.exponent));
  return zero_below(exp_lowest<X>, logarithm, inside);
}

template <FloatScalar X> [[gnu::always_inline]] inline X pow(X x, X y) {
  const X a = abs(x);
  // Beyond 2^70 an exponent gives nothing but 0, 1 and Inf.
  const X below = select(y > 0x1p70, 0x1p70, y);
  const X exponent = select(below < -0x1p70, -0x1p70, below);
  const X core = positive_power(a, exponent);
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

}  // namespace rosin::math
