// Special functions made of other ops, whose gradients they have; see rosin/special.hpp. Halves are computed in
// Float32.
#include <rosin/special.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include <rosin/elementwise.hpp>

#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), pi = std::numbers::pi;

/// f of x as a float; of halves in Float32.
template <class F> Array of_wide(const Array& x, F f) {
  const Array given = as_float(x);
  return narrow(f(wide(given)), given);
}

/// x*log(y) by `log`, where y from `lowest` on has no logarithm. C++ numbers follow the type of the other one.
template <class Log> Array times_log(const Array& factor, const Array& of, double lowest, Log log) {
  const auto floating = [](const Array& v) { return !v.is_nothing() && v.node()->weak ? v : as_float(v); };
  const Array x = floating(factor), y = floating(of);
  const Array unseen = logical_and(eq(x, 0), logical_or(le(y, lowest), eq(y, infinity)));
  const Array seen = where(unseen, 1, y);  // of numbers alone no number any more
  return x * log(y.node()->weak ? cast(seen, x.dtype()) : seen);
}

/// sin(pi*x) / (pi*x) of Float32 or Float64. Near 0 by the series, so that slopes hold at 0; x - 2*round(x/2) is exact.
Array sinc_of(const Array& x) {
  const Array near = lt(abs(x), 0.25), squares = square(where(near, x, 0) * pi);
  double factor = 1;
  Array series = 1;
  for (int k = 9; k >= 1; --k) {
    factor = -1.0 / (2.0 * k * (2.0 * k + 1));
    series = 1 + squares * factor * series;
  }
  const Array away = where(near, 1, x), turned = away - 2 * round(away * 0.5);
  return where(near, series, sin(turned * pi) / (away * pi));
}

const bool named[] = {name_function(ndtr, "ndtr"),       name_function(sinc, "sinc"),
                      name_function(entr, "entr"),       name_function(frac, "frac"),
                      name_function(deg2rad, "deg2rad"), name_function(rad2deg, "rad2deg")};

}  // namespace

Array ndtr(const Array& x) {
  return of_wide(x, [](const Array& v) { return 0.5 * erfc(v * (-1 / std::numbers::sqrt2)); });
}

Array sinc(const Array& x) { return of_wide(x, sinc_of); }

Array xlogy(const Array& x, const Array& y) {
  return times_log(x, y, 0, [](const Array& v) { return log(v); });
}
Array xlog1py(const Array& x, const Array& y) {
  return times_log(x, y, -1, [](const Array& v) { return log1p(v); });
}

Array entr(const Array& x) {
  return of_wide(x, [](const Array& v) { return where(lt(v, 0), -infinity, -xlogy(v, v)); });
}

Array logit(const Array& x, double eps) {
  return of_wide(x, [eps](const Array& v) {
    const Array p = eps >= 0 ? where(lt(v, eps), eps, clamp(v, -infinity, 1 - eps)) : v;
    return log(p / (1 - p));
  });
}

Array heaviside(const Array& x, const Array& at_zero) {
  const Array step = where(is_nan(x), x, cast(gt(x, 0), x.dtype()));
  return where(eq(x, 0), at_zero, step);
}

Array fmod(const Array& a, const Array& b) {
  const Array below = lt(a, 0);
  if (is_integer(a.dtype()) && is_integer(b.dtype())) {  // the lowest number has no opposite
    const Array rest = mod(a, b);
    return where(logical_and(ne(rest, 0), ne(below, lt(b, 0))), rest - b, rest);
  }
  const Array rest = mod(where(below, -a, a), abs(b));
  return where(below, -rest, rest);
}

Array frac(const Array& x) { return x - trunc(x); }

Array nan_to_num(const Array& x, const NanOptions& options) {
  if (!is_float(x.dtype())) return x;
  const double most = x.dtype() == Float64    ? std::numeric_limits<double>::max()
                      : x.dtype() == Float16  ? 65504
                      : x.dtype() == BFloat16 ? 0x1.fep127
                                              : std::numeric_limits<float>::max();
  const Array low = where(eq(x, -infinity), options.neginf.value_or(-most), x);
  const Array high = where(eq(x, infinity), options.posinf.value_or(most), low);
  return where(is_nan(x), options.nan, high);
}

Array lerp(const Array& a, const Array& b, const Array& weight) { return a + weight * (b - a); }

Array deg2rad(const Array& x) { return as_float(x) * (pi / 180); }
Array rad2deg(const Array& x) { return as_float(x) * (180 / pi); }

}  // namespace rosin
