// See approx.hpp.
#include <rosin/approx.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>

#include "graph/host_values.hpp"
#include "ops/reduction.hpp"

namespace rosin {
namespace {

/// An element of any type.
using Element = std::complex<double>;

struct Pair {
  std::vector<Element> x, y;
};

std::vector<Element> numbers_of(const Array& x) {
  const std::vector<double> values = host_values<double>("isapprox", is_complex(x.dtype()) ? view_as_real(x) : x);
  if (!is_complex(x.dtype())) return {values.begin(), values.end()};
  std::vector<Element> numbers;
  for (size_t i = 0; i < values.size(); i += 2) numbers.emplace_back(values[i], values[i + 1]);
  return numbers;
}

Pair values_of(const char* op, const Array& x, const Array& y) {
  if (!(x.shape() == y.shape())) {
    throw Error(ErrorKind::shape, std::string(op) + ": the shapes must agree; got " + to_string(x.shape()) + " and " +
                                      to_string(y.shape()) + "; compare arrays of one shape");
  }
  return {numbers_of(x), numbers_of(y)};
}

double epsilon_of(DType type) {
  switch (part_type(type)) {
    case DType::BFloat16: return 0x1p-7;
    case DType::Float16: return 0x1p-10;
    case DType::Float32: return 0x1p-23;
    case DType::Float64: return 0x1p-52;
    default: return 0;
  }
}

double norm_of(const std::vector<Element>& x) {
  double squares = 0;
  for (const Element& value : x) squares += std::norm(value);
  return std::sqrt(squares);
}

bool is_finite(const Element& x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }

bool near(const Element& x, const Element& y, double rtol, double atol) {
  return x == y || std::abs(x - y) <= std::max(atol, rtol * std::max(std::abs(x), std::abs(y)));
}

}  // namespace

bool isapprox(const Array& x, const Array& y, ApproxOptions options) {
  const Pair values = values_of("isapprox", x, y);
  const double usual = options.atol > 0 ? 0 : std::sqrt(std::max(epsilon_of(x.dtype()), epsilon_of(y.dtype())));
  const double rtol = options.rtol < 0 ? usual : options.rtol;
  std::vector<Element> difference = detail::host_vector<Element>("isapprox", static_cast<int64_t>(values.x.size()));
  std::transform(values.x.begin(), values.x.end(), values.y.begin(), difference.begin(), std::minus<>());
  const double distance = norm_of(difference);
  if (std::isfinite(distance)) {
    return distance <= std::max(options.atol, rtol * std::max(norm_of(values.x), norm_of(values.y)));
  }
  // Infinite elements: each pair for itself.
  return std::equal(values.x.begin(), values.x.end(), values.y.begin(), [&](const Element& a, const Element& b) {
    return a == b || (is_finite(a) && is_finite(b) && near(a, b, rtol, options.atol));
  });
}

bool allclose(const Array& x, const Array& y, CloseOptions options) {
  const Pair values = values_of("allclose", x, y);
  const auto is_nan_of = [](const Element& a) { return std::isnan(a.real()) || std::isnan(a.imag()); };
  return std::equal(values.x.begin(), values.x.end(), values.y.begin(), [&](const Element& a, const Element& b) {
    if (options.equal_nan && is_nan_of(a) && is_nan_of(b)) return true;
    return a == b || (is_finite(a) && is_finite(b) && std::abs(a - b) <= options.atol + options.rtol * std::abs(b));
  });
}

Array isclose(const Array& x, const Array& y, CloseOptions options) {
  const Array a = wide(x), b = wide(y), size = abs(b);
  const Array near = logical_and(le(abs(a - b), options.atol + options.rtol * size), is_finite(size));
  const Array close = logical_or(near, eq(a, b));
  return options.equal_nan ? logical_or(close, logical_and(is_nan(a), is_nan(b))) : close;
}

}  // namespace rosin
