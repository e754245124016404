// Derivatives of digamma; see rosin/special.hpp. For x > 0: order! times a sum of inverse powers (Hurwitz's zeta
// function), whose rest from x + 12 on follows from Euler and Maclaurin; else by reflection. Halves are computed in
// Float32.
#include <rosin/special.hpp>

#include <numbers>
#include <string>
#include <vector>

#include <rosin/elementwise.hpp>

#include "ops/reduction.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

constexpr int terms = 12;  // of the sum, before the series

/// The sum of (a + k)^-s over k = 0, 1, ..., for a > 0.
Array zeta(int s, const Array& a) {
  // B_2k / (2k)!
  constexpr double coefficients[] = {1.0 / 12,           -1.0 / 720,       1.0 / 30240,
                                     -1.0 / 1209600,     1.0 / 47900160.0, -691.0 / 1307674368000.0,
                                     1.0 / 74724249600.0};
  Array sum = pow(a, -s);
  for (int k = 1; k < terms; ++k) sum = sum + pow(a + k, -s);
  const Array inverse = reciprocal(a + terms), squared = square(inverse);
  double rising = s;  // s (s + 1) ... (s + 2k - 2)
  std::vector<double> factors;
  for (int k = 1; const double coefficient : coefficients) {
    factors.push_back(coefficient * rising);
    rising *= (s + 2.0 * k - 1) * (s + 2.0 * k);
    ++k;
  }
  Array series = squared * factors.back();
  for (size_t k = factors.size() - 1; k-- > 0;) series = k == 0 ? series + factors[0] : (series + factors[k]) * squared;
  const Array rest = 1.0 / (s - 1) + inverse * 0.5 + squared * series;
  return sum + pow(inverse, s - 1) * rest;
}

/// The derivative of order `order` of pi*cot(pi*x), for x in [-1/2, 1/2] other than 0.
Array cotangent_slope(int order, const Array& x) {
  std::vector<double> powers{0, 1};  // a polynomial in the cotangent; its derivative is -(1 + c^2) times its slope
  for (int n = 0; n < order; ++n) {
    std::vector<double> next(powers.size() + 1, 0.0);
    for (size_t i = 1; i < powers.size(); ++i) {
      next[i - 1] -= static_cast<double>(i) * powers[i];
      next[i + 1] -= static_cast<double>(i) * powers[i];
    }
    powers = next;
  }
  const double pi = std::numbers::pi;
  const Array angle = x * pi, cotangent = cos(angle) / sin(angle);
  Array value = cotangent * powers.back();
  for (size_t i = powers.size() - 1; i-- > 0;) value = i == 0 ? value + powers[0] : (value + powers[i]) * cotangent;
  double scale = pi;
  for (int n = 0; n < order; ++n) scale *= pi;
  return value * scale;
}

/// Of order 2 and above.
Array higher(int order, const Array& given) {
  const DType type = given.dtype();
  const Array x = size_of(type) == 2 ? cast(given, DType::Float32) : given;
  double factorial = 1;
  for (int n = 2; n <= order; ++n) factorial *= n;
  const double odd = order % 2 == 0 ? -1 : 1;  // (-1)^(order + 1)
  const Array reflected = x <= 0, near = x - round(x);
  const Array above = zeta(order + 1, where(reflected, 1.0 - x, x)) * factorial;
  const Array below = -above - cotangent_slope(order, where(reflected, near, 0.25));
  const Array value = where(reflected, below, above * odd);
  return value.dtype() == type ? value : cast(value, type);
}

}  // namespace

Array polygamma(int n, const Array& given) {
  if (n < 0) refuse(ErrorKind::argument, "polygamma", "the order is at least 0", std::to_string(n), "0 is digamma");
  return n == 0 ? digamma(given) : n == 1 ? trigamma(given) : higher(n, as_float(given));
}

}  // namespace rosin
