// The remainder of a division with the sign of the divisor, and the quotient to it, as generic bodies without branches:
// exact for Float32 whatever the quotient, for Float64 while the quotient is below 2^52. Read first:
// math_exponential.hpp.
#pragma once

#include "ops/math_exponential.hpp"

namespace rosin::math {

/// A positive Float32 as significand * 2^(exponent - 150), the significand in [2^23, 2^24).
template <FloatScalar X> struct Significand {
  Bits<X> significand, exponent;
};
template <FloatScalar X> [[gnu::always_inline]] inline Significand<X> significand_of(X x) {
  const auto tiny = x < least_normal(x);
  const auto bits = bits_of(select(tiny, x * 0x1p24, x));
  return {(bits & 0x7fffff) | 0x800000, (bits >> 23) - select(tiny, lit(bits, 24), 0)};
}

/// a - b*trunc(a/b) for Float32 0 < b <= a < Inf: division by hand, with digits of 20 bits. A digit is rounded from a
/// quotient of Float32, so the rest may be negative; it stays nearer to 0 than the divisor, also where a division is
/// some ulp off.
template <FloatScalar X> [[gnu::always_inline]] inline X rest_by_hand(X a, X b) {
  const auto dividend = significand_of(a), divisor = significand_of(b);
  const X inverse = 1 / to_float(divisor.significand), next_power = inverse * 0x1p20, shift = rounding_shift(a);
  const auto integer = [shift](X x) { return bits_of(x + shift) - bits_of(shift); };
  const auto places = dividend.exponent - divisor.exponent;
  const auto digits = (places * 3277) >> 16;  // places / 20
  const X power = power_of_two(places - digits * 20);
  const auto first = integer(to_float(dividend.significand) * power * inverse);
  auto rest = dividend.significand * integer(power) - first * divisor.significand;
  for (int digit = 0; digit < 13; ++digit) {
    const auto next = (rest << 20) - integer(to_float(rest) * next_power) * divisor.significand;
    // Chosen by a mask: of choices in a row compilers make branches.
    rest = rest ^ ((rest ^ next) & ((digit - digits) >> 31));
  }
  return scaled(to_float(rest + (divisor.significand & (rest >> 31))), divisor.exponent - 150);
}

/// The same for a quotient below 2^20, which is rounded to nearest: so the rest, which may be negative, fits a Float32
/// also where the division is some ulp off.
template <FloatScalar X> [[gnu::always_inline]] inline X rest_at_once(X a, X b, X quotient) {
  const X rest = fma(-round_even(quotient), b, a);
  return select(rest < 0, rest + b, rest);
}

/// Long quotients are rare, and loops that can leap over their code do.
template <FloatScalar X> [[gnu::always_inline]] inline X mod_of_float(X a, X b) {
  const X x = abs(a), y = abs(b), quotient = x / y;
  const X beyond = select(quotient < 0x1p20, rest_at_once(x, y, quotient), rest_by_hand(x, y));
  const X rest = select(x < y, x, beyond);
  const X floored = select(((a < 0) != (b < 0)) & (rest != 0), y - rest, rest);
  return select((x < infinity(x)) & (y > 0), with_sign_of(floored, b), quiet_nan(a));
}

/// a - b*q with the product taken in two exact halves (Dekker), so that the difference is exact while |q| < 2^53.
template <FloatScalar X> [[gnu::always_inline]] inline X exact_rest(X a, X b, X q) {
  round_each_step(a);
  const X b_wide = b * 0x1.000002p27, q_wide = q * 0x1.000002p27;
  const X b_high = b_wide - (b_wide - b), q_high = q_wide - (q_wide - q);
  const X b_low = b - b_high, q_low = q - q_high;
  const X product = b * q;
  const X rounded_away = ((b_high * q_high - product) + b_high * q_low + b_low * q_high) + b_low * q_low;
  return (a - product) - rounded_away;
}

/// The remainder with the sign of b, from one that has the sign of a (or is a little beyond).
template <NumericScalar X> [[gnu::always_inline]] inline X floored(X rest, X b) {
  return select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest);
}

template <FloatScalar X> [[gnu::always_inline]] inline X mod_of_double(X a, X b) {
  const X q = trunc(a / b);
  const X rest = floored(select(q == 0, a, exact_rest(a, b, q)), b);
  return select(rest == 0, with_sign_of(rest, b), rest);
}

template <NumericScalar X> [[gnu::always_inline]] inline X mod(X a, X b) {
  if constexpr (IntegerScalar<X>) return floored(select(b == 0, 0, a - b * (a / b)), b);
  else if constexpr (is_double<X>) return mod_of_double(a, b);
  else return mod_of_float(a, b);
}

/// floor(a/b), so that a = b*floor_divide(a, b) + mod(a, b). Of floats the quotient is rounded: it lies within an ulp
/// of a whole number, as a less its remainder is a multiple of b but for rounding.
template <NumericScalar X> [[gnu::always_inline]] inline X floor_divide(X a, X b) {
  if constexpr (IntegerScalar<X>) {
    const X quotient = a / b, rest = a - b * quotient;
    return select((rest != 0) & ((rest < 0) != (b < 0)) & (b != 0), quotient - 1, quotient);
  } else {
    const X whole = round_even((a - mod(a, b)) / b);
    const X beside_infinity = select((a != 0) & ((a < 0) != (b < 0)), lit(a, -1), 0);
    const X floored = select((abs(b) == infinity(b)) & (abs(a) < infinity(a)), beside_infinity, whole);
    const X quotient = select(floored == 0, with_sign_of(floored, a / b), floored);
    return select(b == 0, a / b, quotient);
  }
}

}  // namespace rosin::math
