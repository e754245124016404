// Reductions composed of others: mean, var, stddev, logsumexp, norm. All are stable; halves are computed in Float32.
#include <rosin/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <rosin/complex.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/node.hpp"
#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"
#include "ops/stop_gradient.hpp"

namespace rosin {
namespace {

struct SpreadAttributes {
  int64_t corrected = 0;
};

/// What a sum of squared distances is divided by.
double count_of(int64_t elements, bool corrected) {
  return static_cast<double>(std::max<int64_t>(elements - (corrected ? 1 : 0), 0));
}

void spread_gradient(Backward& b) {
  const Array distance = b.in(2);
  const int64_t elements = distance.count() / std::max<int64_t>(b.gradient.count(), 1);
  b.give(1, b.gradient * (2 / count_of(elements, b.attributes<SpreadAttributes>().corrected != 0)) * distance);
}

/// Operand 0 is the value, from x and its distances from the mean.
const Op& spread_op = *register_op({.name = "spread",
                                    .kind = Kind::argument,
                                    .operands = 3,
                                    .doc = "the mean of squared distances from the mean",
                                    .gradient = spread_gradient});

Array with_spread_gradient(const Array& y, const Array& x, const Array& distance, bool corrected) {
  return record(spread_op, std::initializer_list<const Array*>{&y, &x, &distance}, y.dtype(), y.shape(),
                Attributes::of(SpreadAttributes{corrected}));
}

/// The element in the middle of what a reduction combines: borders of images are less like the rest.
Array middle_over(const Array& x, uint64_t mask) {
  Array middle = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (const int64_t half = x.size(d) / 2; (mask >> d & 1) != 0) middle = slice(middle, d, half, half + 1);
  }
  return middle;
}

Array variance(const Array& x, uint64_t mask, bool corrected) {
  const Array values = wide(x);
  const Array distance = values - mean_over(values, mask);
  return spread_over(values, distance, mask, corrected);
}

Array var_over(const Array& x, uint64_t mask, bool corrected) { return narrow(variance(x, mask, corrected), x); }
Array stddev_over(const Array& x, uint64_t mask, bool corrected) {
  return narrow(root(variance(x, mask, corrected)), x);
}

void norm_gradient(Backward& b) {
  const Array y = b.out();
  b.give(1, b.gradient * (b.in(1) / where(eq(y, 0), 1, y)));
}

/// Operand 0 is the value, from x.
const Op& norm_op = *register_op({.name = "norm",
                                  .kind = Kind::argument,
                                  .operands = 2,
                                  .doc = "the square root of a sum of squares",
                                  .gradient = norm_gradient});

/// sqrt(sum x^2) in one pass, in which no square that counts overflows or vanishes. Float64 has room for any square of
/// a Float32, but is slow on many devices: there, and of Float64, the sum is taken of x, of x made smaller by a power
/// of 2, where x is large, and of x made larger; the first one that is sound gives the result.
Array euclidean(const Array& x, uint64_t mask) {
  if (x.dtype() == Float32 && x.node()->device == 0) {
    const Array doubled = cast(x, Float64);
    return cast(sqrt(sum_over(doubled * doubled, mask)), Float32);
  }
  const bool is_double = x.dtype() == Float64;
  const double factor = is_double ? 0x1p600 : 0x1p90, large = is_double ? 0x1p800 : 0x1p60;  // of squares
  const double least = is_double ? 0x1p-900 : 0x1p-60, infinity = std::numeric_limits<double>::infinity();
  const Array squares = x * x, smaller = where(gt(squares, large), x * (1 / factor), 0), larger = x * factor;
  const Array plain = sum_over(squares, mask), high = sum_over(smaller * smaller, mask);
  const Array low = sum_over(larger * larger, mask), overflows = eq(plain, infinity), vanishes = lt(plain, least);
  const Array small = where(vanishes, sqrt(low) * (1 / factor), sqrt(plain));
  return where(overflows, sqrt(high) * factor, small);
}

/// (sum |x|^p)^(1/p) of x divided by its largest magnitude, a constant; the magnitude comes back as a factor.
Array power_norm(const Array& x, uint64_t mask, double p) {
  const Array largest = peak_over(abs(x), mask);
  const double infinity = std::numeric_limits<double>::infinity();
  const Array scale = where(gt(largest, 0), where(lt(largest, infinity), largest, 1), 1);
  const Array size = abs(x / scale);
  const DeviceScope scope(*x.node());
  const Array order = cast(p, x.dtype());
  const Array zero = eq(size, 0);
  const Array total = sum_over(where(zero, 0, pow(where(zero, 1, size), order)), mask);
  const Array none = eq(total, 0);
  return scale * where(none, 0, pow(where(none, 1, total), 1 / order));
}

Array norm_over(const Array& x, uint64_t mask, double p) {
  if (!(p > 0))
    refuse(ErrorKind::argument, "norm", "the order must be positive", std::to_string(p), "the default is 2");
  const Array values = is_complex(x.dtype()) ? abs(x) : wide(x);
  if (reduced_count(x.shape(), mask) == 0) return narrow(sum_over(values, mask), x);
  if (std::isinf(p)) return narrow(maximum_over(abs(values), mask), x);
  if (p == 1) return narrow(sum_over(abs(values), mask), x);
  if (p != 2) return narrow(power_norm(values, mask, p), x);
  const Array y = euclidean(values, mask);
  return narrow(record(norm_op, std::initializer_list<const Array*>{&y, &values}, y.dtype(), y.shape()), x);
}

const bool named[] = {name_function(mean, "mean"), name_function(var, "var"), name_function(stddev, "stddev"),
                      name_function(logsumexp, "logsumexp"), name_function(norm, "norm")};

}  // namespace

Array spread_over(const Array& x, const Array& distance, uint64_t mask, bool corrected) {
  const Array y = sum_over(squared_size(distance), mask) / count_of(reduced_count(x.shape(), mask), corrected);
  if (is_complex(x.dtype()) || y.node()->weak) return y;
  return with_spread_gradient(y, x, distance, corrected);
}

Spread spread_in_one_pass(const Array& x, uint64_t mask) {
  const Array values = wide(x), origin = stop_gradient(middle_over(x, mask));
  const Array shifted = values - wide(expand(origin, x.shape()));  // widened where it is read
  const Array offset = mean_over(shifted, mask), mean = wide(origin) + offset, distance = values - mean;
  const Array found = mean_over(shifted * shifted, mask) - offset * offset;
  const Array variance = where(lt(found, 0), 0, found);  // NaN stays
  return {mean, with_spread_gradient(variance, values, distance, false), distance};
}

Array wide(const Array& x) { return is_half(x.dtype()) ? cast(x, Float32) : as_float(x); }
Array narrow(const Array& result, const Array& x) { return is_half(x.dtype()) ? cast(result, x.dtype()) : result; }

Array as_float(const Array& x) { return is_float(x.dtype()) || is_complex(x.dtype()) ? x : cast(x, Float32); }

Array squared_size(const Array& x) { return is_complex(x.dtype()) ? square(real(x)) + square(imag(x)) : x * x; }

Array root(const Array& x) {
  const Array zero = eq(x, 0);
  return where(zero, 0, sqrt(where(zero, 1, x)));
}

Array mean_over(const Array& x, uint64_t mask, int rank) {
  const auto count = static_cast<double>(reduced_count(x.shape(), mask));
  // Sums of integers of up to 32 bits are exact in Int64; those of more might not fit it.
  const bool exact = (is_integer(x.dtype()) || x.dtype() == Bool) && size_of(x.dtype()) < 8;
  return narrow(sum_over(exact ? x : wide(x), mask, rank) / count, x);
}

Array logsumexp_over(const Array& x, uint64_t mask) {
  require_real("logsumexp", x);
  const Array values = wide(x);
  if (reduced_count(x.shape(), mask) == 0) return narrow(log(sum_over(values, mask)), x);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Array largest = peak_over(values, mask);
  const Array shift = where(lt(abs(largest), infinity), largest, 0);
  const Array total = sum_over(exp(values - shift), mask);
  const Array none = eq(total, 0);  // all are -Inf: so is the logarithm, and its gradient is 0
  return narrow(where(none, -infinity, log(where(none, 1, total))) + shift, x);
}

Array mean(const Array& x) { return mean_over(widened(x), all_dims(x.shape()), 0); }
Array mean(const Array& x, Dims dims) { return mean_over(widened(x), dims_mask("mean", dims, x.shape())); }
Array detail::var_of_all(const Array& x, bool corrected) {
  return reshape(var_over(widened(x), all_dims(x.shape()), corrected), Shape{});
}
Array var(const Array& x) { return detail::var_of_all(x, true); }
Array var(const Array& x, Dims dims, bool corrected) {
  return var_over(widened(x), dims_mask("var", dims, x.shape()), corrected);
}
Array detail::stddev_of_all(const Array& x, bool corrected) {
  return reshape(stddev_over(widened(x), all_dims(x.shape()), corrected), Shape{});
}
Array stddev(const Array& x) { return detail::stddev_of_all(x, true); }
Array stddev(const Array& x, Dims dims, bool corrected) {
  return stddev_over(widened(x), dims_mask("stddev", dims, x.shape()), corrected);
}
Array logsumexp(const Array& x) { return reshape(logsumexp_over(widened(x), all_dims(x.shape())), Shape{}); }
Array logsumexp(const Array& x, Dims dims) {
  return logsumexp_over(widened(x), dims_mask("logsumexp", dims, x.shape()));
}
Array norm(const Array& x) { return reshape(norm_over(widened(x), all_dims(x.shape()), 2), Shape{}); }
Array norm(const Array& x, Dims dims, double p) { return norm_over(widened(x), dims_mask("norm", dims, x.shape()), p); }

}  // namespace rosin
