// Circular and hyperbolic functions and their inverses, as generic bodies without branches.
// Read first: math_angle.hpp.
#pragma once

#include "ops/math_angle.hpp"

namespace rosin::math {

/// Whether the low bit of n is set, as a comparison of floats: older processors do not compare 64-bit integers.
template <IntegerScalar I> [[gnu::always_inline]] inline auto is_odd(I n) {
  return float_of_bits((n & 1) << (8 * int{sizeof(typename I::Element)} - 2)) > 1;
}

/// The sine of an angle, so many quarters further.
template <FloatScalar X> [[gnu::always_inline]] inline X sin_of_quarters(Quarters<X> angle, int shift) {
  const auto n = angle.quarters + shift;
  const X value = select(is_odd(n), rounded(cos_kernel(angle.r, angle.rest)), rounded(sin_kernel(angle.r, angle.rest)));
  return float_of_bits(bits_of(value) ^ (shift_right_zero(n & 2, 1) << (8 * int{sizeof(typename X::Element)} - 1)));
}

/// What is `known` of the angle makes it faster; the bits are the same.
template <Angle known = Angle::any, FloatScalar X> [[gnu::always_inline]] inline X sin(X x) {
  return odd(sin_of_quarters(quarters_of<known>(x), 0), x);
}

template <Angle known = Angle::any, FloatScalar X> [[gnu::always_inline]] inline X cos(X x) {
  return sin_of_quarters(quarters_of<known>(x), 1);
}

/// cos(2*pi*x): what x is in turns needs no division by pi.
template <FloatScalar X> [[gnu::always_inline]] inline X cos_of_turns(X x) {
  constexpr double turn = 4 * half_pi;
  const X fraction = x - round_even(x);
  const X quarters = round_even(4 * fraction);
  const X r = fraction - 0.25 * quarters, angle = turn * r;
  const X rest = fma(r, lit(r, turn), -angle) + 4 * half_pi_rest_of<X> * r;
  return sin_of_quarters(Quarters<X>{angle, rest, convert<typename Bits<X>::Element>(quarters)}, 1);
}

/// a/b by one division, with a correction for what rounding the sums, and the quotient, takes away.
template <FloatScalar X> [[gnu::always_inline]] inline X quotient(Sum<X> a, Sum<X> b) {
  const X top = rounded(a), bottom = rounded(b), part = 1 / bottom, q = top * part;
  const X left = fma(-q, bottom, top);
  return q + ((left + ((a.high - top) + a.low)) - q * ((b.high - bottom) + b.low)) * part;
}

template <Angle known = Angle::any, FloatScalar X> [[gnu::always_inline]] inline X tan(X x) {
  const auto angle = quarters_of<known>(x);
  const auto s = sin_kernel(angle.r, angle.rest), c = cos_kernel(angle.r, angle.rest);
  const auto swapped = is_odd(angle.quarters);
  const Sum<X> top = {select(swapped, -c.high, s.high), select(swapped, -c.low, s.low)};
  const Sum<X> bottom = {select(swapped, s.high, c.high), select(swapped, s.low, c.low)};
  return odd(quotient(top, bottom), x);
}

/// atan(t) for |t| <= tan(pi/8) in Float64, for |t| <= 1 in Float32.
template <FloatScalar X> [[gnu::always_inline]] inline X atan_kernel(X t) {
  const X z = t * t;
  if constexpr (is_double<X>) {
    return t + t * z *
                   polynomial(z, -0.333333333333333332, 0.199999999999998025, -0.142857142856593273,
                              0.111111111051067051, -0.0909090875107663588, 0.0769229630497447006,
                              -0.0666642362806925758, 0.058789145444006217, -0.0523034787301607419,
                              0.0455110812632517194, -0.0345580925514137975, 0.0162719447516240619);
  } else {
    return t + t * z *
                   polynomial(z, -0.333332991, 0.199985486, -0.1426424429, 0.1095219653, -0.08403476089, 0.05795797028,
                              -0.03117817813, 0.01091476824, -0.001793655521);
  }
}

/// The angle of (|x|, |y|), in [0, pi/2], in Float32: what rounding the quotient takes away is less than the digits of
/// the result below pi/4, and nothing cancels above.
template <FloatScalar X> [[gnu::always_inline]] inline X first_octants_of_float(X y, X x) {
  const X low = min(x, y), high = max(x, y);
  const X at_origin = select(high == 0, high, low / high);
  const X small = atan_kernel(select(low == infinity(x), 1, at_origin));  // Inf and Inf: pi/4
  return select(y > x, (half_pi_rest_of<X> - small) + half_pi, small);
}

/// The angle of (|x|, |y|), in [0, pi/2], in Float64.
template <FloatScalar X> [[gnu::always_inline]] inline X first_octants_of_double(X y, X x) {
  // Halves, so that sums do not overflow, unless that would lose digits.
  const auto huge = max(x, y) > 0x1p1000;
  const X scale = select(huge, 0.25, lit(x, 1));
  const X low = min(x, y) * scale, high = max(x, y) * scale;
  // Above tan(pi/8): pi/4 - atan of the rest.
  const auto wide = low > high * 0.4142135623730951;
  const X t = select(wide, low - high, low) / select(wide, low + high, high);
  const X at_origin = select(high == 0, high, t);
  const X at_corner = select(low == infinity(x), 0, at_origin);  // Inf and Inf: pi/4
  const X small = atan_kernel(at_corner);
  const X octant = select(wide | (low == infinity(x)), (small + half_pi_rest * 0.5) + half_pi * 0.5, small);
  return select(y > x, (half_pi_rest - octant) + half_pi, octant);
}

/// The angle of (|x|, |y|), in [0, pi/2].
template <FloatScalar X> [[gnu::always_inline]] inline X first_octants(X y, X x) {
  if constexpr (is_double<X>) return first_octants_of_double(abs(y), abs(x));
  else return first_octants_of_float(abs(y), abs(x));
}

template <FloatScalar X> [[gnu::always_inline]] inline X atan2(X y, X x) {
  const X angle = first_octants(y, x);
  // The sign bit of x counts, also that of a zero.
  const auto left = with_sign_of(lit(x, 1), x) < 0;
  const X full = select(left, (2 * half_pi_rest_of<X> - angle) + 2 * half_pi, angle);
  return select(is_nan(x) | is_nan(y), x + y, with_sign_of(full, y));
}

template <FloatScalar X> [[gnu::always_inline]] inline X atan(X x) {
  const X a = abs(x);
  if constexpr (is_double<X>) {
    // Around 1 the angle less pi/4, beyond tan(3*pi/8) less pi/2.
    const auto middle = a > 0.4142135623730951, steep = a > 2.414213562373095;
    const X t = select(steep, -1, select(middle, a - 1, a)) / select(steep, a, select(middle, a + 1, 1));
    const X turn = select(steep, 1, select(middle, 0.5, lit(x, 0)));
    return with_sign_of((atan_kernel(t) + turn * half_pi_rest) + turn * half_pi, x);
  } else {
    const auto steep = a > 1;
    const X small = atan_kernel(select(steep, 1 / a, a));
    return with_sign_of(select(steep, (half_pi_rest_of<X> - small) + half_pi, small), x);
  }
}

/// asin(s)/s - 1, where z = s*s <= 1/4.
template <FloatScalar X> [[gnu::always_inline]] inline X asin_tail(X z) {
  if constexpr (is_double<X>) {
    return z * polynomial(z, 0.166666666666666678, 0.0749999999999843293, 0.0446428571463554298, 0.0303819441385312473,
                          0.0223721729421498879, 0.0173523927208699729, 0.0139712129735529333, 0.0114791774151849059,
                          0.0103228143501857793, 0.0054575067186403583, 0.0174008794426940224, -0.0148518870712472032,
                          0.0287578513674215647);
  } else {
    return z * polynomial(z, 0.1666666634, 0.07500094543, 0.04459940153, 0.03110066274, 0.01714923836, 0.0336908472);
  }
}

template <FloatScalar X> [[gnu::always_inline]] inline X asin(X x) {
  const X a = abs(x);
  const auto near = a < 0.5;
  // Above 1/2: pi/2 - 2*asin(sqrt((1 - a)/2)); NaN above 1 comes from the root.
  const X z = select(near, a * a, (1 - a) * 0.5);
  const X s = select(near, a, sqrt(z));
  const X angle = s + s * asin_tail(z);
  const X value = with_sign_of(select(near, angle, (half_pi_rest_of<X> - 2 * angle) + half_pi), x);
  return select(a <= 1, value, quiet_nan(x));
}

template <FloatScalar X> [[gnu::always_inline]] inline X acos(X x) {
  const X a = abs(x);
  const auto near = a < 0.5;
  const X z = select(near, a * a, (1 - a) * 0.5);
  const X s = select(near, x, sqrt(z));
  const X angle = s + s * asin_tail(z);
  constexpr double rest = half_pi_rest_of<X>;
  const X far = select(x < 0, (2 * rest - 2 * angle) + 2 * half_pi, 2 * angle);
  return select(near, (rest - angle) + half_pi, far);
}

/// sinh(x)/x - 1, where z = x*x <= 1.
template <FloatScalar X> [[gnu::always_inline]] inline X sinh_tail(X z) {
  if constexpr (is_double<X>) {
    return z * polynomial(z, 0.166666666666666667, 0.00833333333333333337, 0.000198412698412697732,
                          2.75573192240403386e-6, 2.50521083640580408e-8, 1.60590483963505616e-10,
                          7.64662536165665766e-13, 2.84452641698952856e-15);
  } else {
    return z * polynomial(z, 0.1666666665, 0.008333339676, 0.0001983810197, 2.806280258e-6);
  }
}

template <FloatScalar X> [[gnu::always_inline]] inline X sinh(X x) {
  const X a = abs(x);
  const X half = half_exp(a);
  const X far = with_sign_of(half - 0.25 / half, x);
  return select(a > 1, far, x + x * sinh_tail(x * x));  // NaN takes the polynomial
}

template <FloatScalar X> [[gnu::always_inline]] inline X cosh(X x) {
  const X half = half_exp(abs(x));
  return half + 0.25 / half;
}

/// Beyond it x*x + 1 and x*x - 1 are x*x.
template <class X> constexpr double far_hyperbolic = is_double<X> ? 0x1p28 : 0x1p13;
inline constexpr double natural_log_of_two = 0x1.62e42fefa39efp-1;

template <FloatScalar X> [[gnu::always_inline]] inline X asinh(X x) {
  const X a = abs(x);
  const auto far = a > far_hyperbolic<X>;
  const X near = select(far, lit(x, 1), a);
  const X z = near * near;
  const X value = log1p(select(far, a - 1, near + z / (1 + sqrt(1 + z))));
  return with_sign_of(select(far, value + natural_log_of_two, value), x);
}

template <FloatScalar X> [[gnu::always_inline]] inline X acosh(X x) {
  const auto far = x > far_hyperbolic<X>;
  const X above = select(far, lit(x, 1), x - 1);
  const X value = log1p(select(far, x - 1, above + sqrt(above * (above + 2))));
  return select(x < 1, quiet_nan(x), select(far, value + natural_log_of_two, value));
}

template <FloatScalar X> [[gnu::always_inline]] inline X atanh(X x) {
  const X a = abs(x);
  return with_sign_of(0.5 * log1p(2 * a / (1 - a)), x);
}

}  // namespace rosin::math
