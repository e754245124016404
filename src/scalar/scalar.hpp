// The two scalars that bodies run on: Num computes (compiled loops), Sym writes scalar code. A body is a generic lambda
// that uses the functions below and nothing else, so one text gives both.
// Read first: primitives.hpp. Read next: make_body.hpp (from a lambda to an ElementBody), ops/math_exponential.hpp.
#pragma once

#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>

#include "scalar/compute.hpp"
#include "scalar/scalar_code.hpp"

namespace rosin::scalar {

/// A number.
template <class T> struct Num {
  using Element = T;
  template <class R> using With = Num<R>;

  T v;

  template <class V> [[gnu::always_inline]] Num like(V value) const { return {static_cast<T>(value)}; }
};

/// A place in a ScalarCode. (What writes is called and not inlined: a fifth of the code of ops would be this.)
template <class T> struct Sym {
  using Element = T;
  template <class R> using With = Sym<R>;

  ScalarCode* code;
  uint16_t place;

  template <class V> [[gnu::always_inline]] Sym like(V value) const { return literal(static_cast<T>(value)); }

  [[gnu::noinline]] Sym literal(T element) const {
    int64_t bits = 0;
    if constexpr (std::same_as<T, float>) bits = std::bit_cast<int32_t>(element);
    else if constexpr (std::same_as<T, double>) bits = std::bit_cast<int64_t>(element);
    else bits = static_cast<int64_t>(element);
    return {code, append(*code, {.primitive = Primitive::literal, .type = scalar_type_of<T>, .immediate = bits})};
  }
};

template <class X>
concept Scalar = requires {
  typename X::Element;
  typename X::template With<bool>;
};
template <class X>
concept FloatScalar = Scalar<X> && FloatElement<typename X::Element>;
template <class X>
concept IntegerScalar = Scalar<X> && IntegerElement<typename X::Element>;
template <class X>
concept NumericScalar = Scalar<X> && NumericElement<typename X::Element>;
template <class X>
concept BoolScalar = Scalar<X> && std::same_as<typename X::Element, bool>;
template <class V>
concept Plain = std::is_arithmetic_v<V>;

/// The Bool scalar of X's world.
template <Scalar X> using Mask = typename X::template With<bool>;
/// The scalar of X's world with the same bits.
template <Scalar X> using Bits = typename X::template With<typename SameBits<typename X::Element>::Type>;

template <class X> inline constexpr bool is_double = std::same_as<typename X::Element, double>;

/// Applies a primitive whose operands decide the type of its result.
template <Primitive p, class... T> [[gnu::always_inline]] inline auto call(Num<T>... x) {
  return Num<decltype(Compute<p>::run(x.v...))>{Compute<p>::run(x.v...)};
}
template <Primitive p, class T, class... Rest> [[gnu::noinline]] auto call(Sym<T> x, Sym<Rest>... rest) {
  using R = decltype(Compute<p>::run(T{}, Rest{}...));
  return Sym<R>{x.code, append(*x.code, {p, scalar_type_of<R>, {x.place, rest.place...}, 0})};
}

/// Scalars whose code may ask for quick functions (ScalarCode::quick); numbers that compute have none.
template <class X>
concept QuickScalar = std::same_as<X, Sym<float>>;

[[gnu::noinline]] inline Sym<float> quick(Quick what, Sym<float> x) {
  return {x.code, append(*x.code, {.type = ScalarType::float32, .operands = {x.place}, .quick = what})};
}

/// The value as an element of X's type: lit(x, 1.5).
template <Scalar X, Plain V> [[gnu::always_inline]] inline X lit(X x, V value) { return x.template like<V>(value); }

/// The distance from 1 to the next number.
template <FloatScalar X> [[gnu::always_inline]] inline X eps(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::epsilon());
}
/// The lowest and the highest finite number.
template <NumericScalar X> [[gnu::always_inline]] inline X lowest(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::lowest());
}
template <NumericScalar X> [[gnu::always_inline]] inline X highest(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::max());
}
template <FloatScalar X> [[gnu::always_inline]] inline X infinity(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::infinity());
}
template <FloatScalar X> [[gnu::always_inline]] inline X quiet_nan(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::quiet_NaN());
}
/// The smallest positive normal number.
template <FloatScalar X> [[gnu::always_inline]] inline X least_normal(X x) {
  return lit(x, std::numeric_limits<typename X::Element>::min());
}

/// To the type R: convert<float>(x).
template <class R, class T> [[gnu::always_inline]] inline Num<R> convert(Num<T> x) {
  return {Compute<Primitive::convert>::to<R>(x.v)};
}
template <class R, class T> [[gnu::noinline]] Sym<R> convert(Sym<T> x) {
  if constexpr (std::same_as<R, T>) return x;
  else return {x.code, append(*x.code, {Primitive::convert, scalar_type_of<R>, {x.place}, 0})};
}
/// Int32 to Float32, Int64 to Float64.
template <IntegerScalar X> [[gnu::always_inline]] inline Bits<X> to_float(X x) {
  return convert<typename Bits<X>::Element>(x);
}
/// The bits of a float as a signed integer of its size, and back.
template <FloatScalar X> [[gnu::always_inline]] inline Bits<X> bits_of(X x) { return call<Primitive::reinterpret>(x); }
template <IntegerScalar X> [[gnu::always_inline]] inline Bits<X> float_of_bits(X x) {
  return call<Primitive::reinterpret>(x);
}

template <NumericScalar X> [[gnu::always_inline]] inline X operator+(X x, X y) { return call<Primitive::add>(x, y); }
template <NumericScalar X> [[gnu::always_inline]] inline X operator-(X x, X y) {
  return call<Primitive::subtract>(x, y);
}
template <NumericScalar X> [[gnu::always_inline]] inline X operator*(X x, X y) {
  return call<Primitive::multiply>(x, y);
}
template <NumericScalar X> [[gnu::always_inline]] inline X operator/(X x, X y) { return call<Primitive::divide>(x, y); }
template <NumericScalar X> [[gnu::always_inline]] inline X operator-(X x) { return call<Primitive::negate>(x); }

template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator+(X x, V y) { return x + lit(x, y); }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator+(V x, X y) { return lit(y, x) + y; }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator-(X x, V y) { return x - lit(x, y); }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator-(V x, X y) { return lit(y, x) - y; }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator*(X x, V y) { return x * lit(x, y); }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator*(V x, X y) { return lit(y, x) * y; }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator/(X x, V y) { return x / lit(x, y); }
template <NumericScalar X, Plain V> [[gnu::always_inline]] inline X operator/(V x, X y) { return lit(y, x) / y; }

template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator<(X x, X y) { return call<Primitive::less>(x, y); }
template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator<=(X x, X y) {
  return call<Primitive::less_equal>(x, y);
}
template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator>(X x, X y) { return call<Primitive::less>(y, x); }
template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator>=(X x, X y) {
  return call<Primitive::less_equal>(y, x);
}
template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator==(X x, X y) { return call<Primitive::equal>(x, y); }
template <Scalar X> [[gnu::always_inline]] inline Mask<X> operator!=(X x, X y) {
  return call<Primitive::not_equal>(x, y);
}

template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator<(X x, V y) { return x < lit(x, y); }
template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator<=(X x, V y) { return x <= lit(x, y); }
template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator>(X x, V y) { return x > lit(x, y); }
template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator>=(X x, V y) { return x >= lit(x, y); }
template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator==(X x, V y) { return x == lit(x, y); }
template <Scalar X, Plain V> [[gnu::always_inline]] inline Mask<X> operator!=(X x, V y) { return x != lit(x, y); }

/// Bool: both, at least one, the opposite. Integers: bit by bit.
template <BoolScalar X> [[gnu::always_inline]] inline X operator&(X x, X y) {
  return call<Primitive::logical_and>(x, y);
}
template <BoolScalar X> [[gnu::always_inline]] inline X operator|(X x, X y) {
  return call<Primitive::logical_or>(x, y);
}
template <BoolScalar X> [[gnu::always_inline]] inline X operator!(X x) { return call<Primitive::logical_not>(x); }
template <IntegerScalar X> [[gnu::always_inline]] inline X operator&(X x, X y) {
  return call<Primitive::bit_and>(x, y);
}
template <IntegerScalar X> [[gnu::always_inline]] inline X operator|(X x, X y) { return call<Primitive::bit_or>(x, y); }
template <IntegerScalar X> [[gnu::always_inline]] inline X operator^(X x, X y) {
  return call<Primitive::bit_xor>(x, y);
}
template <IntegerScalar X, Plain V> [[gnu::always_inline]] inline X operator&(X x, V y) { return x & lit(x, y); }
template <IntegerScalar X, Plain V> [[gnu::always_inline]] inline X operator|(X x, V y) { return x | lit(x, y); }
template <IntegerScalar X> [[gnu::always_inline]] inline X operator<<(X x, int count) {
  return call<Primitive::shift_left>(x, lit(x, count));
}
template <IntegerScalar X> [[gnu::always_inline]] inline X operator>>(X x, int count) {
  return call<Primitive::shift_right>(x, lit(x, count));
}
template <IntegerScalar X> [[gnu::always_inline]] inline X shift_right_zero(X x, int count) {
  return call<Primitive::shift_right_zero>(x, lit(x, count));
}

/// x where the mask holds, else y.
template <Scalar X> [[gnu::always_inline]] inline X select(Mask<X> mask, X x, X y) {
  return call<Primitive::select>(mask, x, y);
}
template <Scalar X, Plain V> [[gnu::always_inline]] inline X select(Mask<X> mask, X x, V y) {
  return select(mask, x, lit(x, y));
}
template <Scalar X, Plain V> [[gnu::always_inline]] inline X select(Mask<X> mask, V x, X y) {
  return select(mask, lit(y, x), y);
}

template <NumericScalar X> [[gnu::always_inline]] inline X abs(X x) { return call<Primitive::absolute>(x); }
/// The lower, the higher; a NaN wins.
template <NumericScalar X> [[gnu::always_inline]] inline X min(X x, X y) { return call<Primitive::minimum>(x, y); }
template <NumericScalar X> [[gnu::always_inline]] inline X max(X x, X y) { return call<Primitive::maximum>(x, y); }
template <FloatScalar X> [[gnu::always_inline]] inline X floor(X x) { return call<Primitive::floor>(x); }
template <FloatScalar X> [[gnu::always_inline]] inline X ceil(X x) { return call<Primitive::ceil>(x); }
template <FloatScalar X> [[gnu::always_inline]] inline X trunc(X x) { return call<Primitive::trunc>(x); }
template <FloatScalar X> [[gnu::always_inline]] inline X round_even(X x) { return call<Primitive::round_even>(x); }
template <FloatScalar X> [[gnu::always_inline]] inline X sqrt(X x) { return call<Primitive::sqrt>(x); }
template <FloatScalar X> [[gnu::always_inline]] inline X fma(X x, X y, X z) { return call<Primitive::fma>(x, y, z); }
template <Scalar X> [[gnu::always_inline]] inline Mask<X> is_nan(X x) { return x != x; }

/// For bodies that compute with what rounding takes away: their steps round one by one in every math mode.
template <FloatScalar X> [[gnu::always_inline]] inline void round_each_step([[maybe_unused]] X x) {
  if constexpr (requires { x.code; }) x.code->rounds_each = true;
}

/// x / y; quick where neither y nor 1/y is subnormal.
template <FloatScalar X> [[gnu::always_inline]] inline X plain_quotient(X x, X y) {
  if constexpr (QuickScalar<X>) {
    if (x.code->quick) return x * quick(Quick::reciprocal, y);
  }
  return x / y;
}

/// x / y; quick for every y.
template <FloatScalar X> [[gnu::always_inline]] inline X quotient(X x, X y) {
  if constexpr (QuickScalar<X>) {
    if (x.code->quick) {  // y*scale and its reciprocal are normal numbers
      const X scale = select(abs(y) > 0x1p+100, 0x1p-2, select(abs(y) < 0x1p-100, lit(x, 0x1p+24), lit(x, 1)));
      return x * quick(Quick::reciprocal, y * scale) * scale;
    }
  }
  return x / y;
}

/// |x| with the sign bit of `sign`.
template <FloatScalar X> [[gnu::always_inline]] inline X with_sign_of(X x, X sign) {
  const auto bit = lit(bits_of(x), std::numeric_limits<typename Bits<X>::Element>::min());
  return float_of_bits(bits_of(abs(x)) | (bits_of(sign) & bit));
}

}  // namespace rosin::scalar
