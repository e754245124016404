// exp, log and what is made of them, as generic bodies without branches: Float32 within 2 ulp, Float64 within
// 3. Polynomials are Chebyshev fits (relative error below an eighth of an ulp on the reduced range).
// Read first: scalar/scalar.hpp. Read next: math_trigonometric.hpp, math_special.hpp.
#pragma once

#include "scalar/scalar.hpp"

namespace rosin::math {

using namespace scalar;

/// c[0] + x*c[1] + x^2*c[2] + ..., by Horner's rule.
template <FloatScalar X> [[gnu::always_inline]] inline X polynomial(X x, double c) { return lit(x, c); }
template <FloatScalar X, class... C> [[gnu::always_inline]] inline X polynomial(X x, double c, C... rest) {
  return fma(polynomial(x, rest...), x, lit(x, c));
}
/// The same where code is written: a loop, since nobody waits for the writing and each coefficient takes its bytes.
template <class T> [[gnu::noinline]] Sym<T> written_polynomial(Sym<T> x, const double* c, int count) {
  Sym<T> value = lit(x, c[count - 1]);
  for (int i = count - 2; i >= 0; --i) value = fma(value, x, lit(x, c[i]));
  return value;
}
template <class T, class... C>
  requires(sizeof...(C) > 0)
inline Sym<T> polynomial(Sym<T> x, double c, C... rest) {
  static constexpr int count = 1 + static_cast<int>(sizeof...(C));
  const double all[] = {c, rest...};
  return written_polynomial(x, all, count);
}

/// Adding and subtracting it rounds to the nearest integer, which then stands in the low bits of the sum, and so much
/// more.
template <FloatScalar X> [[gnu::always_inline]] inline X rounding_shift(X x, int more = 0) {
  return lit(x, (is_double<X> ? 0x1.8p52 : 0x1.8p23) + more);
}

template <class X> inline constexpr int mantissa_bits = is_double<X> ? 52 : 23;
template <class X> inline constexpr int exponent_bias = is_double<X> ? 1023 : 127;

/// From it on all numbers are integers.
template <FloatScalar X> [[gnu::always_inline]] inline X first_without_fraction(X x) {
  return lit(x, static_cast<double>(int64_t{1} << mantissa_bits<X>));
}

/// 2^n for an integer within the exponents of normal numbers.
template <IntegerScalar I> [[gnu::always_inline]] inline Bits<I> power_of_two(I n) {
  return float_of_bits((n + exponent_bias<Bits<I>>) << mantissa_bits<Bits<I>>);
}

/// x * 2^n, rounded once, for x near 1 and n within twice the range of exponents.
template <FloatScalar X> [[gnu::always_inline]] inline X scaled(X x, Bits<X> n) {
  // The halves of n: no arithmetic shift of 64 bits, which older processors lack.
  const auto half = shift_right_zero(n + 2048, 1) - 1024;
  return x * power_of_two(half) * power_of_two(n - half);
}

inline constexpr double log_of_two = 0x1.62e42fefa39efp-1, log2_of_e = 0x1.71547652b82fep+0;
/// ln 2 in two parts, the first short enough for n times it to be exact.
template <class X> inline constexpr double log_of_two_high = is_double<X> ? 0x1.62e42fefa2p-1 : 0x1.62e4p-1;
template <class X> inline constexpr double log_of_two_low = is_double<X> ? 0x1.9ef35793c7673p-41 : 0x1.7f7d1cp-20;

/// What exp() works on: x = n*ln 2 + r, |r| <= ln(2)/2; n also as an integer.
template <FloatScalar X> struct ExpParts {
  X r, n;
  Bits<X> exponent;
};

/// x - n*ln 2.
template <FloatScalar X> [[gnu::always_inline]] inline X less_logs_of_two(X x, X n) {
  return fma(n, lit(x, -log_of_two_low<X>), fma(n, lit(x, -log_of_two_high<X>), x));
}

template <FloatScalar X> [[gnu::always_inline]] inline ExpParts<X> exp_parts(X x) {
  const X shift = rounding_shift(x);
  const X sum = fma(x, lit(x, log2_of_e), shift);
  const X n = sum - shift;
  const auto exponent = bits_of(sum) - bits_of(shift);
  return {less_logs_of_two(x, n), n, exponent};
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_square(X r) {
  if constexpr (is_double<X>) {
    return polynomial(r, 0.5, 0.166666666666666714, 0.0416666666666666701, 0.0083333333333255447,
                      0.00138888888888833267, 0.000198412698768643549, 0.0000248015873270071867, 2.75572528335169097e-6,
                      2.75572718102197996e-7, 2.51062747335732947e-8, 2.09154422977801152e-9);
  } else {
    return polynomial(r, 0.5, 0.1666657338, 0.04166655011, 0.008363773874, 0.001392692661);
  }
}

/// exp(r) - 1 - r for |r| <= ln(2)/2.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_beyond_line(X r) { return r * r * exp_square(r); }

/// exp(r) - 1 for |r| <= ln(2)/2.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_tail(X r) { return fma(r * r, exp_square(r), r); }

/// Beyond these exp(x) and exp(x)/2 are Inf and 0.
template <class X> inline constexpr double exp_highest = is_double<X> ? 712 : 91;
template <class X> inline constexpr double exp_lowest = is_double<X> ? -746 : -104;

/// e^x * 2^n, of codes that may be quick.
inline Sym<float> quick_exp(Sym<float> x, int n = 0) {
  const Sym<float> power = x * log2_of_e;
  return quick(Quick::exp2, n == 0 ? power : power + n);
}

/// How 2^n comes about where it may be no normal number: as 2^(n + more), which is one, times `rest`, which is 2^-more.
/// Sums with `shift` have the exponent of 2^(n + more) in their low bits.
template <FloatScalar X> struct Halfway {
  X shift, rest;
};
template <class X> inline constexpr int halfway = is_double<X> ? 512 : 64;
template <class X> inline constexpr double power_halfway = is_double<X> ? 0x1p512 : 0x1p64;

/// For n that are not positive.
template <FloatScalar X> [[gnu::always_inline]] inline Halfway<X> halfway_down(X x) {
  return {rounding_shift(x, exponent_bias<X> + halfway<X>), lit(x, 1 / power_halfway<X>)};
}
/// For n of x's sign.
template <FloatScalar X> [[gnu::always_inline]] inline Halfway<X> halfway_to(X x) {
  const auto down = x < 0;
  constexpr int bias = exponent_bias<X>;
  return {select(down, rounding_shift(x, bias + halfway<X>), rounding_shift(x, bias - halfway<X>)),
          select(down, 1 / power_halfway<X>, lit(x, power_halfway<X>))};
}

/// The power of two whose exponent is in the low bits of a sum.
template <FloatScalar X> [[gnu::always_inline]] inline X power_in(X sum) {
  return float_of_bits(bits_of(sum) << mantissa_bits<X>);
}

/// value * 2^n, rounded once, for a value near 1 and the sum that tells n. (By a product and not by adding to the bits
/// of the value, which may be those of a NaN.)
template <FloatScalar X> [[gnu::always_inline]] inline X raised(X value, X sum, Halfway<X> way) {
  return value * power_in(sum) * way.rest;
}

/// e^x where that is a number, or Inf for x little above.
template <FloatScalar X> [[gnu::always_inline]] inline X exp_by(X x, Halfway<X> way) {
  const X sum = fma(x, lit(x, log2_of_e), way.shift);
  return raised(1 + exp_tail(less_logs_of_two(x, sum - way.shift)), sum, way);
}

/// `value`, or 0 where x is below `lowest`; NaN stays. (Chosen last, so that processors meet no underflow, at which
/// they are slow.)
template <FloatScalar X> [[gnu::always_inline]] inline X zero_below(double lowest, X x, X value) {
  return select(x < lowest, 0, value);
}

template <FloatScalar X> [[gnu::always_inline]] inline X exp(X x) {
  if constexpr (QuickScalar<X>) {
    if (x.code->quick) return quick_exp(x);
  }
  return zero_below(exp_lowest<X>, x, exp_by(min(lit(x, exp_highest<X>), x), halfway_to(x)));
}

/// exp(-a) for a >= 0.
template <FloatScalar X> [[gnu::always_inline]] inline X falling_exp(X a) {
  if constexpr (QuickScalar<X>) {
    if (a.code->quick) return quick_exp(-a);
  }
  return zero_below(exp_lowest<X>, -a, exp_by(-a, halfway_down(a)));
}

/// exp(x) / 2, without overflow before its time.
template <FloatScalar X> [[gnu::always_inline]] inline X half_exp(X x) {
  if constexpr (QuickScalar<X>) {
    if (x.code->quick) return quick_exp(x, -1);
  }
  Halfway<X> way = halfway_to(x);
  way.rest = way.rest * 0.5;
  return zero_below(exp_lowest<X>, x, exp_by(min(lit(x, exp_highest<X>), x), way));
}

template <FloatScalar X> [[gnu::always_inline]] inline X exp2(X x) {
  if constexpr (QuickScalar<X>) {
    if (x.code->quick) return quick(Quick::exp2, x);
  }
  constexpr double lowest = is_double<X> ? -1076 : -151, highest = is_double<X> ? 1026 : 130;
  const Halfway<X> way = halfway_to(x);
  const X bounded = min(lit(x, highest), x), sum = bounded + way.shift, r = bounded - (sum - way.shift);
  return zero_below(lowest, x, raised(1 + exp_tail(r * log_of_two), sum, way));
}

template <FloatScalar X> [[gnu::always_inline]] inline X expm1(X x) {
  const auto parts = exp_parts(x);
  const X tail = exp_tail(parts.r);
  // Half of the result, so that 2^n fits where the result does.
  const X power = power_of_two(parts.exponent - 1);
  const X far = (power * tail + (power - 0.5)) * 2;
  const X value = select(parts.n == 0, select(x == 0, x, tail), far);
  constexpr double lowest = is_double<X> ? -38 : -18, highest = is_double<X> ? 710 : 89;
  return select(x < lowest, -1, select(x > highest, infinity(x), value));
}

/// What log() works on: x = 2^n * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); x is positive and finite.
template <FloatScalar X> struct LogParts {
  X f, n;
};

template <FloatScalar X> [[gnu::always_inline]] inline LogParts<X> log_parts(X x) {
  constexpr int digits = mantissa_bits<X> + 1;
  const auto tiny = x < least_normal(x);
  const auto bits = bits_of(select(tiny, x * static_cast<double>(int64_t{1} << digits), x));
  if constexpr (is_double<X>) {
    const auto above = bits - 0x3fe6a09e667f3bcdLL;
    const auto biased = shift_right_zero(above + (1023LL << 52), 52);  // never negative
    const X f = float_of_bits(bits - ((biased - 1023) << 52)) - 1;
    // An integer below 2^52 becomes a float by its bits: older processors have no conversion of 64 bits.
    const X n = float_of_bits(biased | 0x4330000000000000LL) - (0x1p52 + 1023);
    return {f, select(tiny, n - digits, n)};
  } else {
    const auto exponent = (bits - 0x3f3504f3) >> 23;
    const X n = to_float(exponent);
    return {float_of_bits(bits - (exponent << 23)) - 1, select(tiny, n - digits, n)};
  }
}

/// (log((1 + s)/(1 - s)) - 2s - s^3*2/3)/s^5, where z = s*s.
template <FloatScalar X> [[gnu::always_inline]] inline X log_quintic(X z) {
  if constexpr (is_double<X>) {
    return polynomial(z, 0.400000000000009413, 0.285714285707644501, 0.222222224005477573, 0.181817947008977996,
                      0.15386290534658992, 0.132674185964748834, 0.131007213835034914);
  } else {
    return polynomial(z, 0.4000015215, 0.2854713627, 0.2341852319);
  }
}

/// f^2/2 - (f - log(1 + f)), small beside f, for 1 + f in [sqrt(1/2), sqrt(2)).
template <FloatScalar X> [[gnu::always_inline]] inline X log_tail(X f) {
  if constexpr (is_double<X>) {
    const X s = f / (2 + f);
    const X z = s * s;
    return s * (f * f * 0.5 + z * (log_quintic(z) * z + 0.666666666666666664));
  } else {
    return f * f * f *
           polynomial(f, 0.3333333118, -0.2499999696, 0.2000071575, -0.1666780232, 0.1424905765, -0.1242568733,
                      0.1168541992, -0.1147973385, 0.06971611471);
  }
}

/// `value`, or what log(x) is where x is not positive and finite: NaN below 0, -Inf at 0, x at Inf and NaN.
template <FloatScalar X> [[gnu::always_inline]] inline X log_edges(X x, X value) {
  const X at_zero = select(x == 0, -infinity(x), value);
  const X below = select(x < 0, quiet_nan(x), at_zero);
  return select(x < infinity(x), below, x);
}

/// log(1 + f) + n*ln(2) + correction.
template <FloatScalar X> [[gnu::always_inline]] inline X log_sum(LogParts<X> parts, X correction) {
  const X f = parts.f;
  const X low = log_tail(f) + fma(parts.n, lit(f, log_of_two_low<X>), correction);
  return fma(parts.n, lit(f, log_of_two_high<X>), f - fma(f * f, lit(f, 0.5), -low));
}

template <FloatScalar X> [[gnu::always_inline]] inline X log(X x) {
  return log_edges(x, log_sum(log_parts(x), lit(x, 0)));
}

template <FloatScalar X> [[gnu::always_inline]] inline X log2(X x) {
  round_each_step(x);
  const auto parts = log_parts(x);
  const X f = parts.f;
  // log2(e) in two parts times log(1 + f) in two parts.
  const X half = f * f * 0.5;
  const X high = float_of_bits(bits_of(f - half) & (is_double<X> ? -0x100000000LL : -0x1000LL));
  const X low = (f - high) - half + log_tail(f);
  constexpr double e_high = is_double<X> ? 0x1.7154765p+0 : 0x1.714p+0;
  constexpr double e_low = is_double<X> ? 0x1.5c17f0bbbe880p-31 : 0x1.47652b82fe177p-12;
  return log_edges(x, (low * e_low + high * e_low) + low * e_high + high * e_high + parts.n);
}

template <FloatScalar X> [[gnu::always_inline]] inline X log1p(X x) {
  const X u = 1 + x;
  // What rounding u took away, as a correction of the logarithm.
  const X lost = select(x > 1, 1 - (u - x), x - (u - 1));
  const X value = log_sum(log_parts(u), lost / u);
  return select(x == 0, x, log_edges(u, value));
}

/// log(1 + x) for 0 <= x <= 1.8: the fraction comes from x itself, so that nothing is lost that a correction would
/// bring back.
template <FloatScalar X> [[gnu::always_inline]] inline X log1p_near(X x) {
  const auto doubles = x > 0.41421356;
  const LogParts<X> parts = {select(doubles, fma(x, lit(x, 0.5), lit(x, -0.5)), x), select(doubles, 1, lit(x, 0))};
  return log_sum(parts, lit(x, 0));
}

template <FloatScalar X> [[gnu::always_inline]] inline X sigmoid(X x) {
  const X e = falling_exp(abs(x));
  // With q = sigmoid(-|x|) = e/(1 + e) = e - e*q and sigmoid(|x|) = 1 - q the quotient's rounding counts for less.
  const X scale = select(x < 0, e, lit(x, 1));
  return fma(-scale, plain_quotient(e, 1 + e), scale);
}

/// log(1 + e^x).
template <FloatScalar X> [[gnu::always_inline]] inline X softplus(X x) {
  return log1p_near(falling_exp(abs(x))) + select(x < 0, 0, x);
}

/// `value`, negated where x is negative.
template <FloatScalar X> [[gnu::always_inline]] inline X odd(X value, X x) {
  const auto sign = lit(bits_of(x), std::numeric_limits<typename Bits<X>::Element>::min());
  return float_of_bits(bits_of(value) ^ (bits_of(x) & sign));
}

/// tanh(r) for |r| <= ln(2)/4 + 0.09.
template <FloatScalar X> [[gnu::always_inline]] inline X tanh_near_zero(X r) {
  const X square = r * r;
  if constexpr (is_double<X>) {
    return fma(
        r * square,
        polynomial(square, -0.33333333333333333, 0.13333333333332687, -0.0539682539662951862, 0.0218694883097780562,
                   -0.00886322266337088795, 0.00359172997419320689, -0.00144898058026075729, 0.000527882629342737749),
        r);
  } else {
    return fma(r * square, polynomial(square, -0.3333331145, 0.1332764625, -0.05176251275), r);
  }
}

template <FloatScalar X> [[gnu::always_inline]] inline X tanh(X x) {
  const X a = abs(x);
  if constexpr (QuickScalar<X>) {
    // Near 0 the quick one may be off by more than the value.
    if (x.code->quick) return select(a < 0.125, x * (1 - x * x * (1.0 / 3)), quick(Quick::tanh, x));
  }
  // |x| = n*ln(2)/2 + r. With P = 2^n and t = tanh(r), e^(2|x|) = P*(1 + t)/(1 - t), so that tanh(|x|) is
  // (P - 1 + (P + 1)*t) / (P + 1 + (P - 1)*t): t itself for n = 0. The upper sum goes into the lower one, which is
  // larger by 2 - 2t, so that for large n its rounding counts for nothing. Rounding counts for most below a quarter,
  // so n is 0 up to there. NaN passes through all of it.
  const X bounded = min(lit(x, is_double<X> ? 20 : 10), a);  // from there on it is 1
  const X shift = rounding_shift(x, exponent_bias<X>);       // so that the sum's low bits are the exponent of P
  const X sum = fma(bounded - 0.09, lit(x, 2 * log2_of_e), shift), n = sum - shift;
  const X power = power_in(sum);
  X r = fma(n, lit(x, -log_of_two / 2), bounded);  // Float32: what is lost counts for less the larger n is
  if constexpr (is_double<X>) r = less_logs_of_two(bounded + bounded, n) * 0.5;
  const X t = tanh_near_zero(r), upper = fma(power + 1, t, power - 1);
  return odd(upper / (upper + fma(t, lit(x, -2), lit(x, 2))), x);
}

}  // namespace rosin::math
