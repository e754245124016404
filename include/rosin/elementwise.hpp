// Ops that work element by element: arithmetic, comparisons, logic, rounding, powers, exponentials, circular functions.
// Operands broadcast: dims are aligned from dim 0, size 1 (and missing last dims) repeat. C++ numbers may stand for
// arrays and take the type of their neighbours. Read next: activation.hpp, reduce.hpp.
//
// Errors of all of them: shape (sizes do not broadcast), dtype (two different floats; UInt64 beside a signed integer; a
// number that the integer type beside it does not hold; a type without the op), device (operands on two devices),
// argument (an operand is nothing). Integers wrap around. All result types: docs/types.md. Functions of real numbers
// (sqrt, exp, sin, ...) turn integers into Float32. Edge rules follow IEEE 754: NaN gives NaN where nothing else is
// said.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// a + b. Bool counts as Int32.
ROSIN_API Array operator+(const Array& a, const Array& b);
/// a - b. Bool counts as Int32.
ROSIN_API Array operator-(const Array& a, const Array& b);
/// a * b, element by element (the matrix product is matmul). Bool counts as Int32.
ROSIN_API Array operator*(const Array& a, const Array& b);
/// a / b; integers give Float32.
ROSIN_API Array operator/(const Array& a, const Array& b);
/// -x.
ROSIN_API Array operator-(const Array& x);
/// The forms a += b rebind the handle: other copies of it keep their value.
ROSIN_API Array& operator+=(Array& a, const Array& b);
ROSIN_API Array& operator-=(Array& a, const Array& b);
ROSIN_API Array& operator*=(Array& a, const Array& b);
ROSIN_API Array& operator/=(Array& a, const Array& b);

/// The operators under their names.
ROSIN_API Array add(const Array& a, const Array& b);
ROSIN_API Array sub(const Array& a, const Array& b);
ROSIN_API Array mul(const Array& a, const Array& b);
ROSIN_API Array div(const Array& a, const Array& b);
ROSIN_API Array neg(const Array& x);

/// a - b*floor(a/b): the remainder with the sign of b (Julia's mod), exact; of Float64 while |a/b| < 2^52, meaningless
/// beyond. Integers: 0 where b is 0. The gradient by b is -floor(a/b).
ROSIN_API Array mod(const Array& a, const Array& b);
/// floor(a/b) in the type of a and b: the quotient to mod, as Python's // is to its %, so that a = b*floor_divide(a, b)
/// + mod(a, b). Integers: 0 where b is 0. The gradient is 0.
ROSIN_API Array floor_divide(const Array& a, const Array& b);
/// |x|. The gradient at 0 is 0.
ROSIN_API Array abs(const Array& x);
/// -1, 0 or 1; NaN for NaN. The gradient is 0.
ROSIN_API Array sign(const Array& x);
/// The largest integer not above x, in the type of x. The gradient is 0.
ROSIN_API Array floor(const Array& x);
/// The smallest integer not below x, in the type of x. The gradient is 0.
ROSIN_API Array ceil(const Array& x);
/// x without its fraction, in the type of x. The gradient is 0.
ROSIN_API Array trunc(const Array& x);
/// The nearest integer, halves to even, in the type of x. The gradient is 0.
ROSIN_API Array round(const Array& x);

/// The higher of two; NaN if one is NaN. Ties share the gradient.
ROSIN_API Array max(const Array& a, const Array& b);
/// The lower of two; NaN if one is NaN. Ties share the gradient.
ROSIN_API Array min(const Array& a, const Array& b);
/// x, but at least low and at most high (high wins if low > high). Integers stay integers where both bounds are whole.
/// The gradient is 1 inside and at the bounds, 0 outside.
ROSIN_API Array clamp(const Array& x, double low, double high);
/// The same with bounds that are arrays, which broadcast; NaN where a bound is NaN. What the bounds replace has its
/// gradient at the bound.
ROSIN_API Array clamp(const Array& x, const Array& low, const Array& high);

/// Bool arrays; comparisons with NaN are false, except that NaN is unequal to everything. A whole number that the
/// integer type beside it does not hold compares as in mathematics: UInt32 1 > -1.
ROSIN_API Array eq(const Array& a, const Array& b);
ROSIN_API Array ne(const Array& a, const Array& b);
ROSIN_API Array lt(const Array& a, const Array& b);
ROSIN_API Array le(const Array& a, const Array& b);
ROSIN_API Array gt(const Array& a, const Array& b);
ROSIN_API Array ge(const Array& a, const Array& b);
/// The same as operators. They give arrays, not truth: write same(a, b) for identity, all(a == b) for equality.
ROSIN_API Array operator==(const Array& a, const Array& b);
ROSIN_API Array operator!=(const Array& a, const Array& b);
ROSIN_API Array operator<(const Array& a, const Array& b);
ROSIN_API Array operator<=(const Array& a, const Array& b);
ROSIN_API Array operator>(const Array& a, const Array& b);
ROSIN_API Array operator>=(const Array& a, const Array& b);

/// Of Bool arrays: both, at least one, exactly one, the opposite. && and || are not overloaded. Error (dtype):
/// integers.
ROSIN_API Array logical_and(const Array& a, const Array& b);
ROSIN_API Array logical_or(const Array& a, const Array& b);
ROSIN_API Array logical_xor(const Array& a, const Array& b);
ROSIN_API Array logical_not(const Array& x);
ROSIN_API Array operator&(const Array& a, const Array& b);
ROSIN_API Array operator|(const Array& a, const Array& b);
ROSIN_API Array operator^(const Array& a, const Array& b);
ROSIN_API Array operator!(const Array& x);

/// a where the Bool array `condition` holds, else b. Error (dtype): condition is not Bool.
ROSIN_API Array where(const Array& condition, const Array& a, const Array& b);
/// Whether elements are NaN, infinite, neither; false, false, true for integers.
ROSIN_API Array is_nan(const Array& x);
ROSIN_API Array is_inf(const Array& x);
ROSIN_API Array is_finite(const Array& x);
/// x in another type. Float to integer: toward zero, at most to the bounds, NaN to 0; to Bool: not equal to 0; integer
/// to integer: the low bits; complex to real: Error (dtype), see real and abs. Floats have the gradient, cast back.
ROSIN_API Array cast(const Array& x, DType type);

/// x*x.
ROSIN_API Array square(const Array& x);
/// 1/x.
ROSIN_API Array reciprocal(const Array& x);
/// x^y; integers give Float32, but a C++ integer y >= 0 keeps the type of x, and small ones are products. pow(x, 0) = 1
/// and pow(1, y) = 1 also for NaN; NaN for negative x and broken y. Gradients are free of NaN at x^0 and 0^y (by x:
/// y*x^(y-1), 0 where y is 0; by y: x^y*log(x), 0 where x is 0).
ROSIN_API Array pow(const Array& x, const Array& y);
/// The square root; NaN below 0. The gradient at 0 is Inf.
ROSIN_API Array sqrt(const Array& x);
/// 1/sqrt(x).
ROSIN_API Array rsqrt(const Array& x);
/// The cube root, of negative numbers too. The gradient at 0 is Inf.
ROSIN_API Array cbrt(const Array& x);

/// e^x, 2^x, e^x - 1 (accurate near 0).
ROSIN_API Array exp(const Array& x);
ROSIN_API Array exp2(const Array& x);
ROSIN_API Array expm1(const Array& x);
/// The natural logarithm, those of base 2 and 10, and log(1 + x) (accurate near 0): -Inf at the pole, NaN below it.
ROSIN_API Array log(const Array& x);
ROSIN_API Array log2(const Array& x);
ROSIN_API Array log10(const Array& x);
ROSIN_API Array log1p(const Array& x);
/// log(e^x + e^y), without overflow; -Inf where both are.
ROSIN_API Array logaddexp(const Array& x, const Array& y);

/// Circular functions, in radians; NaN at Inf. Float32 is accurate for all finite x; Float64 to 2 ulp for |x| up to
/// 1e6, beyond as if x had been changed by an ulp.
ROSIN_API Array sin(const Array& x);
ROSIN_API Array cos(const Array& x);
ROSIN_API Array tan(const Array& x);
/// Their inverses; asin and acos are NaN outside [-1, 1].
ROSIN_API Array asin(const Array& x);
ROSIN_API Array acos(const Array& x);
ROSIN_API Array atan(const Array& x);
/// The angle of the point (x, y), in [-pi, pi]; the signs of zeros count as in C. The gradient at (0, 0) is 0.
ROSIN_API Array atan2(const Array& y, const Array& x);
/// Hyperbolic functions.
ROSIN_API Array sinh(const Array& x);
ROSIN_API Array cosh(const Array& x);
ROSIN_API Array tanh(const Array& x);
/// Their inverses; acosh is NaN below 1, atanh outside [-1, 1].
ROSIN_API Array asinh(const Array& x);
ROSIN_API Array acosh(const Array& x);
ROSIN_API Array atanh(const Array& x);

/// The error function.
ROSIN_API Array erf(const Array& x);
/// log|Gamma(x)|; Inf at 0, -1, -2, ...
ROSIN_API Array lgamma(const Array& x);
/// The derivative of lgamma; NaN at 0, -1, -2, ... Near roots of Float64, and below 0, only the absolute error
/// is small.
ROSIN_API Array digamma(const Array& x);
/// The derivative of digamma; Inf at 0, -1, -2, ... Gradients of any order.
ROSIN_API Array trigamma(const Array& x);

}  // namespace rosin
