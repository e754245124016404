// Special functions beside those of elementwise.hpp (erf, lgamma, digamma, trigamma), which is to be read first, and
// small functions of numbers that other libraries have. Integers give Float32 unless it says something else.
#pragma once

#include <optional>

#include <rosin/array.hpp>

namespace rosin {

/// The inverse of erf: erf(erfinv(x)) = x. -Inf and Inf at -1 and 1, NaN outside; integers give Float32. The gradient
/// is sqrt(pi)/2 * exp(erfinv(x)^2). sqrt(2) * erfinv(2p - 1) is the standard normal number with p below it.
/// Sources: Giles, Approximating the erfinv function (Float32); Wichura, Algorithm AS 241 (Float64).
ROSIN_API Array erfinv(const Array& x);
/// 1 - erf(x), accurate where it is small.
ROSIN_API Array erfc(const Array& x);
/// The standard normal distribution function, accurate in the lower tail. Source: torch.special.ndtr.
ROSIN_API Array ndtr(const Array& x);
/// The derivative of order n of digamma, which is order 0. At 0, -1, -2, ... it is infinite or NaN. Error (argument): n
/// is below 0. Source: torch.polygamma; Abramowitz and Stegun 6.4.
ROSIN_API Array polygamma(int n, const Array& x);

/// The modified Bessel functions of the first kind of order 0 and 1; those that end in e are divided by e^|x|.
/// Gradients of any order. Source: torch.special.i0, numpy.i0.
ROSIN_API Array i0(const Array& x);
ROSIN_API Array i0e(const Array& x);
ROSIN_API Array i1(const Array& x);
ROSIN_API Array i1e(const Array& x);

/// sin(pi*x) / (pi*x), 1 at 0. Gradients of any order, at 0 too. Source: numpy.sinc.
ROSIN_API Array sinc(const Array& x);
/// x*log(y) and x*log(1 + y), but 0 where x is 0, unless y is NaN. Source: torch.special.xlogy, xlog1py.
ROSIN_API Array xlogy(const Array& x, const Array& y);
ROSIN_API Array xlog1py(const Array& x, const Array& y);
/// -x*log(x): 0 at 0, -Inf below it. The sum over probabilities is their entropy. Source: torch.special.entr.
ROSIN_API Array entr(const Array& x);
/// log(x / (1 - x)), the inverse of sigmoid; of x between eps and 1 - eps where eps is not below 0. Source:
/// torch.logit.
ROSIN_API Array logit(const Array& x, double eps = -1);

/// sqrt(x*x + y*y), without overflow before its time; Inf where one is infinite. The gradient at (0, 0) is 0.
ROSIN_API Array hypot(const Array& x, const Array& y);
/// |x| with the sign of y, that of zeros too. The gradient by y is 0, that by x at 0 too.
ROSIN_API Array copysign(const Array& x, const Array& y);
/// Whether the sign is a minus, that of zeros and NaN too: Bool.
ROSIN_API Array signbit(const Array& x);
/// 0 where x is below 0, `at_zero` where it is 0, 1 above it, in the type of both. Source: numpy.heaviside.
ROSIN_API Array heaviside(const Array& x, const Array& at_zero);
/// The remainder of a/b with the sign of a, exact (see mod, whose has that of b). The gradient by b is -trunc(a/b).
/// Integers stay integers; of Float64 it is exact while the quotient is below 2^52, beyond it means nothing. Source:
/// C's fmod.
ROSIN_API Array fmod(const Array& a, const Array& b);
/// x - trunc(x), exact; of infinite x NaN. Source: torch.frac.
ROSIN_API Array frac(const Array& x);
/// x with other numbers in the places of NaN, Inf and -Inf: by default 0 and the largest and lowest finite ones of its
/// type. The gradient there is 0. Source: numpy.nan_to_num.
struct NanOptions {
  double nan = 0;
  std::optional<double> posinf = {};
  std::optional<double> neginf = {};
};
ROSIN_API Array nan_to_num(const Array& x, const NanOptions& options = {});
/// a + weight*(b - a). Source: torch.lerp.
ROSIN_API Array lerp(const Array& a, const Array& b, const Array& weight);
/// Angles of degrees in radians, and back.
ROSIN_API Array deg2rad(const Array& x);
ROSIN_API Array rad2deg(const Array& x);

}  // namespace rosin
