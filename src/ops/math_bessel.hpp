// The modified Bessel functions I0 and I1 of the first kind, as generic bodies without branches: Float32 within 8 ulp,
// Float64 within 16. Up to a bound their power series in (x/2)^2, whose terms have one sign, beyond it a polynomial in
// the inverse; both as Chebyshev fits. Read first: math_exponential.hpp.
#pragma once

#include "ops/math_exponential.hpp"

namespace rosin::math {

/// Up to it the series.
template <class X> inline constexpr double bessel_bound = is_double<X> ? 16 : 8;

/// I0(x) for z = (x/2)^2.
template <FloatScalar X> [[gnu::always_inline]] inline X i0_series(X z) {
  if constexpr (is_double<X>) {
    return polynomial(
        z, 1, 1.000000000000000025, 0.24999999999999992519, 0.027777777777777866857, 0.0017361111111110548016,
        0.00006944444444446631086, 1.9290123456733181208e-6, 3.9367598892461948751e-8, 6.1511873253406856874e-10,
        7.5940584431552482364e-12, 7.594058306254179189e-14, 6.276082126662419368e-16, 4.3583858217719963855e-18,
        2.5789454001069692917e-20, 1.3157249395321101171e-22, 5.8494008850370679401e-25, 2.2810861670269523383e-27,
        7.9614152828772395964e-30, 2.3598701161124313971e-32, 7.6276716935921055179e-35, 9.6743903042154721732e-38,
        8.1951942895892686788e-40, -9.8321018335610518731e-43, 5.5759917457217335947e-45);
  } else {
    return polynomial(z, 1.0000000096, 0.9999998542, 0.25000036374, 0.027777424545, 0.0017362866354, 6.9393712547e-5,
                      1.9381159781e-6, 3.8325073362e-8, 6.9099096824e-10, 4.2378710761e-12, 1.5536414263e-13);
  }
}

/// I1(x)/x for z = (x/2)^2.
template <FloatScalar X> [[gnu::always_inline]] inline X i1_series(X z) {
  if constexpr (is_double<X>) {
    return polynomial(
        z, 0.5, 0.24999999999999998281, 0.041666666666666713911, 0.0034722222222221705919, 0.00017361111111114103825,
        5.7870370370263930536e-6, 1.3778659612246416114e-7, 2.4604749302850174103e-9, 3.4173262979901470338e-11,
        3.7970291636046179962e-13, 3.4518451101561298338e-15, 2.6150317578792641261e-17, 1.6763135809491005084e-19,
        9.2101003255490244225e-22, 4.386994456715497493e-24, 1.824964784496507651e-26, 6.7659456871143457516e-29,
        2.1251184371426515804e-31, 7.2376079396754041271e-34, 9.7142506399074594964e-37, 8.5955144633796732259e-39,
        -1.0816125995478010811e-41, 6.4165232947904588656e-44);
  } else {
    return polynomial(z, 0.50000000038, 0.24999999419, 0.041666681154, 0.0034722081496, 0.0001736181069,
                      5.7850137828e-6, 1.3814998715e-7, 2.4188051937e-9, 3.721210358e-11, 2.4480737764e-13,
                      6.6677924397e-15);
  }
}

/// I0(x) * sqrt(x) / e^x for t = bound/x.
template <FloatScalar X> [[gnu::always_inline]] inline X i0_far(X t) {
  if constexpr (is_double<X>) {
    return polynomial(t, 0.3989422804014326811, 0.00311673656563512483, 0.00010957276994497437685,
                      7.1336425868599282151e-6, 6.827263795367237944e-7, 8.6311074043540889741e-8,
                      1.4009162452521357472e-8, 1.4755998643522493761e-9, 2.5844494619251163174e-9,
                      -2.34625117250150925e-9, 2.0068050854268572737e-9, -8.996625693629103479e-10,
                      1.9785172808569213586e-10);
  } else {
    return polynomial(t, 0.39894228083, 0.0062334312698, 0.00043894317535, 5.3360701362e-5, 2.0566747139e-5,
                      -9.1719316809e-6, 6.9311348859e-6);
  }
}

/// I1(x) * sqrt(x) / e^x for t = bound/x.
template <FloatScalar X> [[gnu::always_inline]] inline X i1_far(X t) {
  if constexpr (is_double<X>) {
    return polynomial(t, 0.3989422804014326746, -0.0093502096969074499305, -0.00018262128320543310949,
                      -9.987100063125601364e-6, -8.7778776813676037109e-7, -1.0550698563307107079e-7,
                      -1.6506759349349217379e-8, -1.8086826213867759484e-9, -2.7744259716835731337e-9,
                      2.4712382985147451047e-9, -2.123455181571172074e-9, 9.5102743772380780015e-10,
                      -2.095731732090522336e-10);
  } else {
    return polynomial(t, 0.39894227992, -0.018700372652, -0.00073121323062, -7.5756157818e-5, -2.4812993409e-5,
                      9.9582230611e-6, -7.8159990182e-6);
  }
}

/// What both functions need of a = |x|; `near` is at most the bound, so that series stay finite.
template <FloatScalar X> struct BesselParts {
  X a, near, far;  // far: sqrt(a) under what far polynomials give
  Mask<X> is_near;
  X z, t;
};
template <FloatScalar X> [[gnu::always_inline]] inline BesselParts<X> bessel_parts(X x) {
  constexpr double bound = bessel_bound<X>;
  const X a = abs(x);
  const auto is_near = a <= bound;
  const X near = select(is_near, a, bound), half = near * 0.5, beyond = select(is_near, bound, a);
  return {a, near, 1 / sqrt(beyond), is_near, half * half, bound / beyond};
}

/// e^a times a far value, without overflow before its time; Inf at Inf.
template <FloatScalar X> [[gnu::always_inline]] inline X risen(X far, X a) {
  const X root = exp(a * 0.5);
  return select(a == infinity(a), a, root * far * root);
}

template <FloatScalar X> [[gnu::always_inline]] inline X i0e(X x) {
  const auto p = bessel_parts(x);
  return select(p.is_near, i0_series(p.z) * falling_exp(p.near), i0_far(p.t) * p.far);
}
template <FloatScalar X> [[gnu::always_inline]] inline X i0(X x) {
  const auto p = bessel_parts(x);
  return select(p.is_near, i0_series(p.z), risen(i0_far(p.t) * p.far, p.a));
}
template <FloatScalar X> [[gnu::always_inline]] inline X i1e(X x) {
  const auto p = bessel_parts(x);
  return select(p.is_near, x * (i1_series(p.z) * falling_exp(p.near)), with_sign_of(i1_far(p.t) * p.far, x));
}
template <FloatScalar X> [[gnu::always_inline]] inline X i1(X x) {
  const auto p = bessel_parts(x);
  return select(p.is_near, x * i1_series(p.z), with_sign_of(risen(i1_far(p.t) * p.far, p.a), x));
}

}  // namespace rosin::math
