// log|Gamma| and its first two derivatives: recurrence, reflection, and series for large arguments. Below 0 the error
// of a Float32 is a few ulp of the terms that the reflection subtracts; elsewhere a few ulp of the result. Read first:
// math_trigonometric.hpp.
#pragma once

#include "ops/math_exponential.hpp"
#include "ops/math_trigonometric.hpp"

namespace rosin::math {

inline constexpr double pi = 2 * half_pi;

/// sin(pi*x)/pi and cos(pi*x) up to one common sign.
template <FloatScalar X> struct PiAngle {
  X sine_by_pi, cosine;
};

template <FloatScalar X> [[gnu::always_inline]] inline PiAngle<X> pi_angle(X x) {
  const X shift = with_sign_of(first_without_fraction(x), x);
  const X r = select(abs(x) < abs(shift), x - ((x + shift) - shift), 0);
  const X a = abs(r);
  const auto wide = a > 0.25;
  const X t = select(wide, 0.5 - a, a) * pi;
  const auto sine = sin_kernel(t, lit(t, 0));
  const X cosine = rounded(cos_kernel(t, lit(t, 0)));
  const X sine_by_pi = select(wide, cosine * (1 / pi), a + sine.low * (1 / pi));
  return {with_sign_of(sine_by_pi, r), select(wide, rounded(sine), cosine)};
}

/// log(Gamma(2 + t)) / (t * (1 + t)) for -1/2 <= t <= 1/2, in Float32 from -3/4 on.
template <FloatScalar X> [[gnu::always_inline]] inline X lgamma_kernel(X t) {
  if constexpr (is_double<X>) {
    return polynomial(t, 0.422784335098467143, -0.100317301674353923, 0.03296500062115359, -0.0123841921933702103,
                      0.00499864116493537287, -0.00210813083406947195, 0.000915376912508783129,
                      -0.000405707392856115851, 0.000182552838390722593, -0.0000830952214691512614,
                      0.0000381666059333999161, -0.0000176605862316522975, 8.23747667463625009e-6,
                      -3.85462213625158332e-6, 1.74905403080681899e-6, -8.24768808290591312e-7, 5.23656853484136214e-7,
                      -2.48902952965039575e-7);
  } else {
    return polynomial(t, 0.4227843342, -0.1003173243, 0.03296512654, -0.01238319105, 0.004996268022, -0.002120825502,
                      0.0009278359248, -0.0003423907212, 0.0001730082559, -0.0001970829484);
  }
}

/// log(Gamma(a)) for 1/2 <= a.
template <FloatScalar X> [[gnu::always_inline]] inline X lgamma_above(X a) {
  // Down by ones into [3/2, 5/2), or up by one; the difference above 5/4 would have too few digits in Float32.
  X y = a, product = lit(a, 1);
  for (int step = 0; step < 6; ++step) {
    const auto above = y >= 2.5;
    const X next = y - 1;
    product = select(above, product * next, product);
    y = select(above, next, y);
  }
  const auto below = a < (is_double<X> ? 1.5 : 1.25);
  const X from_two = select(below, a - 1, y - 2), from_one = select(below, a, y - 1);
  const X middle = from_two * from_one * lgamma_kernel(from_two);
  const auto large = a >= 8;
  const X logarithm = log(select(large, a, select(below, a, product)));
  const X near = middle + select(below, -logarithm, logarithm);
  const X inverse = 1 / a, z = inverse * inverse;
  X series = inverse;
  if constexpr (is_double<X>) {
    series = inverse * polynomial(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360,
                                  1.0 / 156, -3617.0 / 122400, 43867.0 / 244188);
  } else {
    series = inverse * polynomial(z, 1.0 / 12, -1.0 / 360);
  }
  return select(large, (a - 0.5) * (logarithm - 1) + (0.41893853320467274 + series), near);
}

/// log|Gamma(x)|.
template <FloatScalar X> [[gnu::always_inline]] inline X lgamma(X x) {
  const auto reflected = x < 0.5;
  const X above = lgamma_above(select(reflected, 1 - x, x));
  const X sine_by_pi = abs(pi_angle(x).sine_by_pi);
  const X value = select(reflected, -log(sine_by_pi) - above, above);
  return select((abs(x) == infinity(x)) | (reflected & (sine_by_pi == 0)), infinity(x), value);
}

/// log(a) - digamma(a) for a >= 8.
template <FloatScalar X> [[gnu::always_inline]] inline X digamma_series(X a) {
  const X inverse = 1 / a, z = inverse * inverse;
  if constexpr (is_double<X>) {
    return inverse * 0.5 + z * polynomial(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760,
                                          1.0 / 12, -3617.0 / 8160);
  } else {
    return inverse * 0.5 + z * polynomial(z, 1.0 / 12, -1.0 / 120);
  }
}

/// digamma(a) for a > 0 in Float64.
template <FloatScalar X> [[gnu::always_inline]] inline X digamma_of_double(X a) {
  // Up to at least 8, the terms 1/a, 1/(a + 1), ... as one fraction.
  X top = lit(a, 0), bottom = lit(a, 1);
  for (int step = 0; step < 8; ++step) {
    const auto below = a < 8;
    top = select(below, top * a + bottom, top);
    bottom = select(below, bottom * a, bottom);
    a = select(below, a + 1, a);
  }
  return (log(a) - digamma_series(a)) - top / bottom;
}

/// digamma(a) for a > 0 in Float32, where a difference of logarithms would have too few digits around the root.
template <FloatScalar X> [[gnu::always_inline]] inline X digamma_of_float(X a) {
  // Down by ones into [1, 2), or up by one; the terms 1/(a - 1), 1/(a - 2), ... as one fraction.
  const auto below = a < 1;
  X y = a, top = select(below, -1, lit(a, 0)), bottom = select(below, a, 1);
  for (int step = 0; step < 6; ++step) {
    const auto above = y >= 2;
    const X next = y - 1;
    top = select(above, top * next + bottom, top);
    bottom = select(above, bottom * next, bottom);
    y = select(above, next, y);
  }
  y = select(below, a + 1, y);
  constexpr double root = 0x1.762d86356be3fp+0, root_high = 0x1.762d86p+0;
  const X slope = polynomial(y - 1.5, 0.9510558756, -0.4236274989, 0.2405426158, -0.1483987869, 0.09498207998,
                             -0.06205706003, 0.04087937161, -0.025781095, 0.01698026473, -0.01638395641, 0.01111886628);
  const X near = top / bottom + ((y - root_high) - (root - root_high)) * slope;
  return select(a >= 8, log(a) - digamma_series(a), near);
}

/// The derivative of log(Gamma).
template <FloatScalar X> [[gnu::always_inline]] inline X digamma(X x) {
  const auto reflected = x <= 0;
  const X a = select(reflected, 1 - x, x);
  X above = a;
  if constexpr (is_double<X>) above = digamma_of_double(a);
  else above = digamma_of_float(a);
  const auto angle = pi_angle(x);
  const X pole = select(angle.sine_by_pi == 0, quiet_nan(x), angle.cosine / angle.sine_by_pi);
  const X value = select(reflected, above - pole, above);
  return select(x == infinity(x), x, value);
}

/// trigamma(a) - 1/a - 1/(2*a^2) for a >= 8, from 1/a and 1/a^2.
template <FloatScalar X> [[gnu::always_inline]] inline X trigamma_series(X inverse, X z) {
  if constexpr (is_double<X>) {
    return inverse * z *
           polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510);
  } else {
    return inverse * z * polynomial(z, 1.0 / 6, -1.0 / 30);
  }
}

/// The derivative of digamma.
template <FloatScalar X> [[gnu::always_inline]] inline X trigamma(X x) {
  const auto reflected = x <= 0;
  X a = select(reflected, 1 - x, x), sum = lit(x, 0);
  for (int step = 0; step < 8; ++step) {
    const auto below = a < 8;
    const X inverse = 1 / a;
    sum = select(below, sum + inverse * inverse, sum);
    a = select(below, a + 1, a);
  }
  const X inverse = 1 / a, z = inverse * inverse;
  const X above = ((inverse + z * 0.5) + trigamma_series(inverse, z)) + sum;
  const X pole = 1 / pi_angle(x).sine_by_pi;
  return select(reflected, pole * pole - above, above);
}

}  // namespace rosin::math
