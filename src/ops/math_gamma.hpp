// log|Gamma| and its first two derivatives, in Float64: recurrence, reflection, and series for large arguments.
// Read first: math_special.hpp.
#pragma once

#include "ops/math_exponential.hpp"
#include "ops/math_trigonometric.hpp"

namespace rosin::math {

inline constexpr double pi = 2 * half_pi;

/// sin(pi*x) and cos(pi*x) up to one common sign.
template <FloatScalar X> struct PiAngle {
  X sine, cosine;
};

template <FloatScalar X> [[gnu::always_inline]] inline PiAngle<X> pi_angle(X x) {
  const X shift = rounding_shift(x);
  const X r = select(abs(x) < 0x1p51, x - ((x + shift) - shift), 0);
  const auto wide = abs(r) > 0.25;
  const X t = select(wide, 0.5 - abs(r), abs(r)) * pi;
  const X s = rounded(sin_kernel(t, lit(t, 0))), c = rounded(cos_kernel(t, lit(t, 0)));
  return {with_sign_of(select(wide, c, s), r), select(wide, s, c)};
}

/// log(Gamma(a)) for 1/2 <= a.
template <FloatScalar X> [[gnu::always_inline]] inline X lgamma_above(X a) {
  // Down by ones into [3/2, 5/2), or up by one.
  X y = a, product = lit(a, 1);
  for (int step = 0; step < 6; ++step) {
    const auto above = y >= 2.5;
    const X next = y - 1;
    product = select(above, product * next, product);
    y = select(above, next, y);
  }
  const auto below = a < 1.5;
  const X from_two = select(below, a - 1, y - 2), from_one = select(below, a, y - 1);
  const X middle =
      from_two * from_one *
      polynomial(from_two, 0.422784335098467143, -0.100317301674353923, 0.03296500062115359, -0.0123841921933702103,
                 0.00499864116493537287, -0.00210813083406947195, 0.000915376912508783129, -0.000405707392856115851,
                 0.000182552838390722593, -0.0000830952214691512614, 0.0000381666059333999161,
                 -0.0000176605862316522975, 8.23747667463625009e-6, -3.85462213625158332e-6, 1.74905403080681899e-6,
                 -8.24768808290591312e-7, 5.23656853484136214e-7, -2.48902952965039575e-7);
  const auto large = a >= 8;
  const X logarithm = log(select(large, a, select(below, a, product)));
  const X near = middle + select(below, -logarithm, logarithm);
  const X inverse = 1 / a, z = inverse * inverse;
  const X series = inverse * polynomial(z, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360,
                                        1.0 / 156, -3617.0 / 122400, 43867.0 / 244188);
  return select(large, (a - 0.5) * (logarithm - 1) + (0.41893853320467274 + series), near);
}

/// log|Gamma(x)|.
template <FloatScalar X> [[gnu::always_inline]] inline X lgamma(X x) {
  if constexpr (is_double<X>) {
    const auto reflected = x < 0.5;
    const X above = lgamma_above(select(reflected, 1 - x, x));
    const X sine = abs(pi_angle(x).sine);
    const X value = select(reflected, -log(sine * (1 / pi)) - above, above);
    return select((abs(x) == infinity(x)) | (reflected & (sine == 0)), infinity(x), value);
  } else {
    return narrowed<X>(lgamma(convert<double>(x)));
  }
}

/// The derivative of log(Gamma).
template <FloatScalar X> [[gnu::always_inline]] inline X digamma(X x) {
  if constexpr (is_double<X>) {
    const auto reflected = x < 0.5;
    // Up to at least 8, the terms 1/a, 1/(a + 1), ... as one fraction.
    X a = select(reflected, 1 - x, x), top = lit(x, 0), bottom = lit(x, 1);
    for (int step = 0; step < 8; ++step) {
      const auto below = a < 8;
      top = select(below, top * a + bottom, top);
      bottom = select(below, bottom * a, bottom);
      a = select(below, a + 1, a);
    }
    const X inverse = 1 / a, z = inverse * inverse;
    const X series = z * polynomial(z, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12,
                                    -3617.0 / 8160);
    const X above = (log(a) - (inverse * 0.5 + series)) - top / bottom;
    const auto angle = pi_angle(x);
    const X pole = select(angle.sine == 0, quiet_nan(x), angle.cosine / angle.sine);
    const X value = select(reflected, above - pi * pole, above);
    return select(x == infinity(x), x, value);
  } else {
    return narrowed<X>(digamma(convert<double>(x)));
  }
}

/// The derivative of digamma.
template <FloatScalar X> [[gnu::always_inline]] inline X trigamma(X x) {
  if constexpr (is_double<X>) {
    const auto reflected = x < 0.5;
    X a = select(reflected, 1 - x, x), sum = lit(x, 0);
    for (int step = 0; step < 8; ++step) {
      const auto below = a < 8;
      const X inverse = 1 / a;
      sum = select(below, sum + inverse * inverse, sum);
      a = select(below, a + 1, a);
    }
    const X inverse = 1 / a, z = inverse * inverse;
    const X series =
        inverse * z *
        polynomial(z, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510);
    const X above = ((inverse + z * 0.5) + series) + sum;
    const X sine = pi_angle(x).sine;
    return select(reflected, pi * pi / (sine * sine) - above, above);
  } else {
    return narrowed<X>(trigamma(convert<double>(x)));
  }
}

}  // namespace rosin::math
