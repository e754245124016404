// See approx.hpp.
#include <rosin/approx.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <rosin/error.hpp>

namespace rosin {
namespace {

struct Pair {
  std::vector<double> x, y;
};

Pair values_of(const char* op, const Array& x, const Array& y) {
  if (!(x.shape() == y.shape())) {
    throw Error(ErrorKind::shape, std::string(op) + ": the shapes must agree; got " + to_string(x.shape()) + " and " +
                                      to_string(y.shape()) + "; compare arrays of one shape");
  }
  return {x.to_vector<double>(), y.to_vector<double>()};
}

double epsilon_of(DType type) {
  switch (type) {
    case DType::BFloat16: return 0x1p-7;
    case DType::Float16: return 0x1p-10;
    case DType::Float32: return 0x1p-23;
    case DType::Float64: return 0x1p-52;
    default: return 0;
  }
}

double norm_of(const std::vector<double>& x) {
  double squares = 0;
  for (double value : x) squares += value * value;
  return std::sqrt(squares);
}

bool near(double x, double y, double rtol, double atol) {
  return x == y || std::abs(x - y) <= std::max(atol, rtol * std::max(std::abs(x), std::abs(y)));
}

}  // namespace

bool isapprox(const Array& x, const Array& y, ApproxOptions options) {
  const Pair values = values_of("isapprox", x, y);
  const double usual = options.atol > 0 ? 0 : std::sqrt(std::max(epsilon_of(x.dtype()), epsilon_of(y.dtype())));
  const double rtol = options.rtol < 0 ? usual : options.rtol;
  std::vector<double> difference(values.x.size());
  std::transform(values.x.begin(), values.x.end(), values.y.begin(), difference.begin(), std::minus<>());
  const double distance = norm_of(difference);
  if (std::isfinite(distance)) {
    return distance <= std::max(options.atol, rtol * std::max(norm_of(values.x), norm_of(values.y)));
  }
  // Infinite elements: each pair for itself.
  return std::equal(values.x.begin(), values.x.end(), values.y.begin(),
                    [&](double a, double b) { return a == b || (std::isfinite(a) && near(a, b, rtol, options.atol)); });
}

bool allclose(const Array& x, const Array& y, CloseOptions options) {
  const Pair values = values_of("allclose", x, y);
  return std::equal(values.x.begin(), values.x.end(), values.y.begin(), [&](double a, double b) {
    return a == b || std::abs(a - b) <= options.atol + options.rtol * std::abs(b);
  });
}

}  // namespace rosin
