// Initialisers that are computed on the host: truncated_normal, orthogonal, sparse_init, identity_init.
#include <rosin/init.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/movement.hpp>

#include "graph/leaf.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse_options(ErrorKind kind, const std::string& text) { throw Error(kind, text); }

Rng& generator(Rng* rng) { return rng ? *rng : default_rng(); }

Array converted(const Array& exact, DType type) {
  Array x = type == Float64 ? exact : cast(exact, type);
  eval(x);
  return x;
}

Array made(const std::vector<double>& values, const Shape& shape, DType type) {
  return converted(Array(values, shape), type);
}

std::vector<double> values_of(const char* op, const Array& x) {
  std::vector<double> values = detail::host_vector<double>(op, x.count());
  x.copy_to(std::span<double>(values));
  return values;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

/// The inverse of erf on (-1, 1): a start by Winitzki's formula, then Newton's steps until they change nothing.
double erf_inverse(double y) {
  if (y <= -1 || y >= 1) return std::copysign(HUGE_VAL, y);
  const double a = 0.147, l = std::log1p(-y * y), half = 2 / (std::numbers::pi * a) + l / 2;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - l / a) - half), y);
  for (int i = 0; i < 8; ++i) {
    const double step = (std::erf(x) - y) / (2 * std::numbers::inv_sqrtpi * std::exp(-x * x));
    x -= step;
    if (std::abs(step) <= 1e-16 * std::abs(x)) break;
  }
  return x;
}

/// The columns of a (rows x columns, column-major) made orthonormal in order; Gram-Schmidt, done twice for precision.
void orthonormalise(std::vector<double>& a, size_t rows, size_t columns) {
  for (size_t j = 0; j < columns; ++j) {
    double* column = &a[j * rows];
    for (size_t k = 0; k < 2 * j; ++k) {
      const double* other = &a[(k % j) * rows];
      double product = 0;
      for (size_t i = 0; i < rows; ++i) product += column[i] * other[i];
      for (size_t i = 0; i < rows; ++i) column[i] -= product * other[i];
    }
    double square = 0;
    for (size_t i = 0; i < rows; ++i) square += column[i] * column[i];
    for (size_t i = 0; i < rows; ++i) column[i] /= std::sqrt(square);
  }
}

}  // namespace

Array truncated_normal(const Shape& shape) { return truncated_normal(shape, TruncatedNormalOptions{}); }
Array truncated_normal(const Shape& shape, const TruncatedNormalOptions& options) {
  if (!(options.std > 0) || !(options.lo < options.hi)) {
    refuse_options(ErrorKind::argument, "truncated_normal: std must be positive and lo below hi; got std " +
                                            std::to_string(options.std) + ", lo " + std::to_string(options.lo) +
                                            ", hi " + std::to_string(options.hi) + "; use other limits");
  }
  const double low = normal_cdf((options.lo - options.mean) / options.std);
  const double high = normal_cdf((options.hi - options.mean) / options.std);
  std::vector<double> values = values_of("truncated_normal", uniform(generator(options.rng), shape, 0, 1, Float64));
  for (double& value : values) {
    const double quantile = erf_inverse(2 * (low + value * (high - low)) - 1) * std::sqrt(2.0);
    value = std::clamp(options.mean + options.std * quantile, options.lo, options.hi);
  }
  return made(values, shape, options.type);
}

Array orthogonal(const Shape& shape) { return orthogonal(shape, GainOptions{}); }
Array orthogonal(const Shape& shape, const GainOptions& options) {
  if (shape.rank() < 2) {
    refuse_options(ErrorKind::shape, "orthogonal: the shape must have two dims or more; got " + to_string(shape) +
                                         "; use zeros32 for biases");
  }
  const size_t columns = static_cast<size_t>(shape[-1]);
  if (shape.count() == 0) return zeros(shape, options.type);
  const size_t rows = static_cast<size_t>(shape.count()) / columns;
  const size_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
  std::vector<double> drawn = values_of("orthogonal", normal(generator(options.rng), {shape.count()}, 0, 1, Float64));
  orthonormalise(drawn, longer, shorter);
  std::vector<double> values = detail::host_vector<double>("orthogonal", static_cast<int64_t>(drawn.size()));
  for (size_t j = 0; j < columns; ++j) {
    for (size_t i = 0; i < rows; ++i) {
      values[j * rows + i] = options.gain * (rows >= columns ? drawn[j * longer + i] : drawn[i * longer + j]);
    }
  }
  return made(values, shape, options.type);
}

Array sparse_init(const Shape& shape, const SparseOptions& options) {
  if (shape.rank() != 2) {
    refuse_options(ErrorKind::shape,
                   "sparse_init: only matrices can be sparse; got " + to_string(shape) + "; use two sizes");
  }
  if (shape.count() == 0) return zeros(shape, options.type);
  const size_t rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  const double wanted = std::ceil(std::clamp(options.sparsity, 0.0, 1.0) * static_cast<double>(rows));
  Rng& rng = generator(options.rng);
  std::vector<double> values = values_of("sparse_init", normal(rng, shape, 0, options.std, Float64));
  std::vector<size_t> order(rows);
  for (size_t column = 0; column < columns; ++column) {
    for (size_t i = 0; i < rows; ++i) order[i] = i;
    // The first places of a random order.
    for (size_t i = 0; i < static_cast<size_t>(wanted); ++i) {
      std::swap(order[i], order[i + rng.below(rows - i)]);
      values[column * rows + order[i]] = 0;
    }
  }
  return made(values, shape, options.type);
}

Array identity_init(const Shape& shape) { return identity_init(shape, IdentityOptions{}); }
Array identity_init(const Shape& shape, const IdentityOptions& options) {
  const int rank = shape.rank();
  if (rank < 2 || shape.count() == 0) return zeros(shape, options.type);
  // The middle of the kernel, counted as in Julia's cld(k, 2) from 1.
  int64_t middle = 0, plane = 1;
  for (int d = 0; d < rank - 2; ++d) {
    middle += (shape[d] - 1) / 2 * plane;
    plane *= shape[d];
  }
  const Array exact = leaf_of<double>(shape, [](int64_t) { return 0.0; });
  double* const values = static_cast<double*>(exact.node()->data());
  const int64_t size = shape[0], shift = options.shift % size;
  for (int64_t i = 0; i < std::min(shape[-2], shape[-1]); ++i) {
    const int64_t at = middle + plane * (i + shape[-2] * i), first = at % size;
    const int64_t shifted = ((first + shift) % size + size) % size;
    values[at - first + shifted] = options.gain;
  }
  return converted(exact, options.type);
}

}  // namespace rosin
