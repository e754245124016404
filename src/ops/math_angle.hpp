// Angles cut into quarters of a turn and what remains, for the circular functions, and sin and cos of what remains.
// Float32 uses integers and pairs of Float32 only: many devices have no Float64.
// Read first: math_exponential.hpp. Read next: math_trigonometric.hpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/math_exponential.hpp"

namespace rosin::math {

inline constexpr double half_pi = 0x1.921fb54442d18p+0;
inline constexpr double half_pi_rest = 0x1.1a62633145c07p-54;
/// What rounding pi/2 to the type of X takes away.
template <class X>
inline constexpr double half_pi_rest_of =
    is_double<X> ? half_pi_rest : half_pi - static_cast<double>(static_cast<float>(half_pi));

/// |x| = quarters*pi/2 + r, |r| <= pi/4 (and a little); quarters modulo 4 in the low bits of `quarters`. `rest` is what
/// rounding took from r; for Float64 it is 0 and does not count.
template <FloatScalar X> struct Quarters {
  X r, rest;
  Bits<X> quarters;
};

/// A number as a sum whose rounding is still to come.
template <FloatScalar X> struct Sum {
  X high, low;
};

/// sin(r + rest) and cos(r + rest) for |r| <= pi/4, their sums rounded within 1 ulp.
template <FloatScalar X> [[gnu::always_inline]] inline Sum<X> sin_kernel(X r, X rest) {
  const X z = r * r;
  if constexpr (is_double<X>) {
    return {r, r * z *
                   polynomial(z, -0.166666666666666667, 0.00833333333333333126, -0.000198412698412645659,
                              2.75573192189547623e-6, -2.50521061002559892e-8, 1.60585108753191949e-10,
                              -7.58548648523593814e-13)};
  } else {
    return {r, rest + r * z * polynomial(z, -0.1666666666, 0.008333331874, -0.000198400865, 2.724989523e-6)};
  }
}
template <FloatScalar X> [[gnu::always_inline]] inline Sum<X> cos_kernel(X r, X rest) {
  const X z = r * r;
  const X half = z * 0.5;
  const X w = 1 - half;
  const X lost = (1 - w) - half;
  if constexpr (is_double<X>) {
    const X tail =
        polynomial(z, 0.0416666666666666667, -0.00138888888888888877, 0.000024801587301584369, -2.75573192211891042e-7,
                   2.08767557175844037e-9, -1.14704493544667726e-11, 4.74519880720287581e-14);
    return {w, lost + z * z * tail};
  } else {
    const X tail = polynomial(z, 0.04166666466, -0.001388830292, 2.454791685e-5);
    return {w, lost + (z * z * tail - r * rest)};
  }
}
template <FloatScalar X> [[gnu::always_inline]] inline X rounded(Sum<X> sum) { return sum.high + sum.low; }

/// 32 bits of 2^-24/(2*pi), from this bit behind the point on.
constexpr int64_t turn_bits(int first) {
  constexpr uint64_t words[] = {0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d, 0x4d377036, 0xd8a5664f, 0x10e4107f, 0};
  const auto word = static_cast<std::size_t>(first / 32);
  const uint64_t pair = words[word] << 32 | words[word + 1];
  return static_cast<int64_t>(pair >> (32 - first % 32) & 0xffffffff);
}

/// An angle as a fraction of a turn: 64 bits behind the point, in two halves.
template <FloatScalar X> struct Turn {
  Bits<X> high, low;
};

/// Where angles begin that take the long way, and the j of these and of the largest Float32.
inline constexpr float near_limit = 0x1p15f;
inline constexpr int first_window = 2, last_window = 16;

/// The bits of turn_bits from 8*j + offset on, for the largest j up to `last` with a >= 2^(8*j - 1), which is at least
/// first_window. Made of changes: of choices among constants compilers make choices among those of 64 bits that they
/// become later.
template <int last, int offset, FloatScalar X> [[gnu::always_inline]] inline Bits<X> window(X a) {
  constexpr int64_t bits = turn_bits(8 * last + offset);
  if constexpr (last == first_window) return lit(bits_of(a), bits);
  else {
    const auto change = lit(bits_of(a), bits ^ turn_bits(8 * last - 8 + offset));
    return select(a >= std::bit_cast<float>((126 + 8 * last) << 23), change, 0) ^ window<last - 1, offset>(a);
  }
}

/// The fraction of a turn that a Float32 a >= near_limit is, after Payne and Hanek: a is y * 2^(8*j - 24) with an
/// integer y below 2^31; of 2^(8*j - 24)/(2*pi) only 96 bits behind the point count.
template <FloatScalar X> [[gnu::always_inline]] inline Turn<X> turn_of(X a) {
  using Long = typename X::template With<int64_t>;
  const auto bits = bits_of(a);
  // The power of two in y as a float between 1 and 2^7, and by its sum with 2^23 as an integer.
  const X power = float_of_bits(((bits + (2 << 23)) & (7 << 23)) + (127 << 23));
  const auto factor = ((bits & 0x7fffff) | 0x800000) * (bits_of(power + 0x1p23) & 0xff);
  const auto first = window<last_window, 0>(a), second = window<last_window, 32>(a), third = window<last_window, 64>(a);
  const auto product = [factor](auto word) -> Long {
    return convert<int64_t>(convert<uint32_t>(factor)) * convert<int64_t>(convert<uint32_t>(word));
  };
  const Long sum = product(second) + shift_right_zero(product(third), 32);
  return {convert<int32_t>(shift_right_zero(sum, 32)) + factor * first, convert<int32_t>(sum)};
}

/// The angle of a Float32 >= near_limit by its fraction of a turn; of NaN and Inf the quarters and r are any.
template <FloatScalar X> [[gnu::always_inline]] inline Quarters<X> far_quarters(X a) {
  const auto turn = turn_of(a);
  const auto quarters = (turn.high + (1 << 29)) >> 30;
  // The nearest quarter taken off: a fraction of a quarter with 64 bits, its sign, and its magnitude in 12, 12 and 31.
  const auto fraction = (turn.high << 2) | shift_right_zero(turn.low, 30);
  const auto sign = fraction >> 31;
  const auto high = fraction ^ sign, low = (turn.low << 2) ^ sign;
  const X first = to_float(high & 0x7ff80000), second = to_float(high & 0x0007ff80);
  const X third = to_float(((high & 0x7f) << 24) | shift_right_zero(low, 8));
  // pi/2 in two parts, so that products with the first are exact.
  const X exact = first * 0x1.92p-32;
  const X others = second * 0x1.92p-32 + ((first + second) * 0x1.fb5444p-44 + third * 0x1.921fb6p-56);
  const X sum = exact + others;
  const X rest = (exact - sum) + others;
  const auto sign_bit = fraction & std::numeric_limits<int32_t>::min();
  return {float_of_bits(bits_of(sum) | sign_bit), float_of_bits(bits_of(rest) ^ sign_bit), quarters};
}

/// The angle of a Float32 from 0 to near_limit, after Cody and Waite: pi/2 in three parts of which n is taken off. The
/// difference from the first is exact, the second comes as a product and what rounding takes from it: a product by fma,
/// as a difference from x * y may round once with it.
template <FloatScalar X> [[gnu::always_inline]] inline Quarters<X> near_quarters(X a) {
  const X shift = rounding_shift(a);
  const X sum = fma(a, lit(a, 0x1.45f306p-1), shift);
  const X n = sum - shift;
  constexpr double first = 0x1.921fb6p+0, second = -0x1.777a5cp-25, third = -0x1.ee59dap-50;
  const X coarse = fma(n, lit(a, -first), a);
  const X taken = fma(n, lit(a, second), lit(a, 0)), lost = fma(n, lit(a, second), -taken);
  const X r = coarse - taken;
  return {r, fma(n, lit(a, -third), ((coarse - r) - taken) - lost), bits_of(sum)};
}

template <FloatScalar X> [[gnu::always_inline]] inline Quarters<X> quarters_of_float(X a) {
  const auto near = near_quarters(a), far = far_quarters(a);
  const auto is_near = a < near_limit;
  return {select(is_near, near.r, select(a < infinity(a), far.r, quiet_nan(a))), select(is_near, near.rest, far.rest),
          select(is_near, near.quarters, far.quarters)};
}

/// The angle of a Float64: pi/2 in parts whose products with n are exact below 2^20; beyond, x counts as if changed by
/// an ulp, and from 2^51 on only the range of the result is kept.
template <FloatScalar X> [[gnu::always_inline]] inline Quarters<X> quarters_of_double(X a) {
  const X shift = rounding_shift(a);
  const X sum = a * 0x1.45f306dc9c883p-1 + shift;
  const X n = sum - shift;
  const X r = ((a - n * 0x1.921fb544p+0) - n * 0x1.0b4611a6p-34) - n * 0x1.3198a2ep-69 - n * 0x1.b839a252049c1p-104;
  const X below = select(r > 0.8, 0.8, r);
  return {select(below < -0.8, -0.8, below), lit(a, 0), bits_of(sum)};
}

/// What is known of an angle: nothing, or that its magnitude is below near_limit.
enum class Angle { any, near };

/// The angle |x|.
template <Angle known = Angle::any, FloatScalar X> [[gnu::always_inline]] inline Quarters<X> quarters_of(X x) {
  if constexpr (is_double<X>) return quarters_of_double(abs(x));
  else if constexpr (known == Angle::near) return near_quarters(abs(x));
  else return quarters_of_float(abs(x));
}

}  // namespace rosin::math
