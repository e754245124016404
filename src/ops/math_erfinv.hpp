// The inverse of the error function, as a generic body without branches: Float32 within 4 ulp, Float64 within 8.
// Read first: math_exponential.hpp.
#pragma once

#include "ops/math_exponential.hpp"

namespace rosin::math {

/// polynomial() of a list.
template <FloatScalar X, size_t n> [[gnu::always_inline]] inline X polynomial(X x, const double (&c)[n]) {
  X sum = lit(x, c[n - 1]);
  for (size_t i = n - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// Of polynomials of w - 2.5 and sqrt(w) - 3, w = -log(1 - x^2).
inline constexpr double erfinv_near[] = {1.50140941,      0.246640727,    -0.00417768164, -0.00125372503, 0.00021858087,
                                         -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
inline constexpr double erfinv_far[] = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                                        -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};

/// For |x| < 1. Source: Giles, Approximating the erfinv function, GPU Computing Gems, 2011 (single precision).
template <FloatScalar X> [[gnu::always_inline]] inline X erfinv_in_single(X x) {
  const X w = -log((1 - x) * (1 + x));
  const X near = polynomial(w - 2.5, erfinv_near), far = polynomial(sqrt(w) - 3, erfinv_far);
  return x * select(w < 5, near, far);
}

/// For |x| < 1, as the number that a normal one is below with probability (x + 1)/2.
/// Source: Wichura, Algorithm AS 241: The percentage points of the normal distribution, 1988 (PPND16).
template <FloatScalar X> [[gnu::always_inline]] inline X erfinv_in_double(X x) {
  constexpr double root_half = 0x1.6a09e667f3bcdp-1;
  const X a = abs(x), t = 0.180625 - x * x * 0.25;
  const X root = sqrt(-log((1 - a) * 0.5)), u = root - 1.6, v = root - 5;
  const auto central = a <= 0.85, tail = root <= 5;
  const X above =
      select(central,
             polynomial(t, 3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
                        45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
             select(tail,
                    polynomial(u, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
                               3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
                               0.0227238449892691845833, 7.74545014278341407640e-4),
                    polynomial(v, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
                               0.296560571828504891230, 0.0265321895265761230930, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7)));
  const X below =
      select(central,
             polynomial(t, 1, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
                        21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
             select(tail,
                    polynomial(u, 1, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
                               0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
                               1.05075007164441684324e-9),
                    polynomial(v, 1, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
                               7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                               2.04426310338993978564e-15)));
  const X ratio = above / below * root_half;
  return select(central, x * (ratio * 0.5), with_sign_of(ratio, x));
}

template <FloatScalar X> [[gnu::always_inline]] inline X erfinv(X x) {
  const auto pole = abs(x) == 1;
  const X inside = select(pole, 0, x);
  const X inner = is_double<X> ? erfinv_in_double(inside) : erfinv_in_single(inside);
  const X known = select(abs(x) <= 1, inner, quiet_nan(x));
  return select(pole, with_sign_of(infinity(x), x), known);
}

}  // namespace rosin::math
