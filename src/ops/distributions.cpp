// Random arrays of continuous distributions, composed of uniform and normal draws. Read first: random.cpp, drawing.hpp.
// Read next: counts.cpp (counts, classes, choices).
#include <rosin/distributions.hpp>

#include <rosin/activation.hpp>
#include <rosin/special.hpp>

#include "graph/context.hpp"
#include "graph/op.hpp"
#include "ops/distribution_parts.hpp"

namespace rosin {
namespace {

const bool named[] = {name_function(rand_like, "rand_like"), name_function(randn_like, "randn_like")};

/// Marsaglia and Tsang accept at least 95 in 100 candidates; all eight fail once in 10^10.
constexpr int gamma_candidates = 8;

/// A gamma variable of concentration a >= 1: d*v with d = a - 1/3 and v the cube of 1 + z/sqrt(9d), z normal.
Array gamma_from_one_on(Rng& rng, const Shape& shape, const Array& a, DType type) {
  const Array d = a - 1.0 / 3, c = rsqrt(9.0 * d);
  Array chosen, open;  // open: no candidate was accepted yet
  for (int i = 0; i < gamma_candidates; ++i) {
    const Array z = normal(rng, shape, 0, 1, type), u = draw(rng, shape, type);
    const Array root = 1.0 + c * z, v = root * square(root);
    const Array bound = 0.5 * square(z) + d * (1.0 - v + log(where(root > 0, v, 1.0)));
    const Array accepted = logical_and(root > 0, log(u) < bound);
    chosen = i == 0 ? where(accepted, v, 1.0) : where(logical_and(accepted, open), v, chosen);
    open = i == 0 ? logical_not(accepted) : logical_and(open, logical_not(accepted));
  }
  return d * chosen;
}

/// What a gamma variable of concentration a + 1 is multiplied by, as a logarithm: log(u)/a, of which a < 1 has need.
struct GammaParts {
  Array larger, log_factor;
};
GammaParts gamma_parts(Rng& rng, const Shape& shape, const Array& a, DType type) {
  const Array small = a < 1;
  const Array larger = gamma_from_one_on(rng, shape, where(small, a + 1.0, a), type);
  const Array u = 1.0 - draw(rng, shape, type);  // in (0, 1]
  return {larger, where(small, log(u) / a, 0.0)};
}

/// Where all four are numbers. Error (argument): the range begins in a tail that its numbers are too coarse for.
void require_near(const Array& mean, const Array& deviation, const Array& low, const Array& high, DType drawn) {
  const Array* const parameters[] = {&mean, &deviation, &low, &high};
  double numbers[4];
  for (int i = 0; i < 4; ++i) {
    const Node& node = *parameters[i]->node();
    if (!is_scalar(node)) return;
    numbers[i] = number_of(node);
  }
  const double most = drawn == Float64 ? 7 : 4, first = (numbers[2] - numbers[0]) / numbers[1],
               last = (numbers[3] - numbers[0]) / numbers[1];
  if (first <= most && last >= -most) return;
  refuse(ErrorKind::argument, "truncated_normal",
         "the range begins within " + std::string(drawn == Float64 ? "7" : "4") + " deviations of the mean",
         std::to_string(first) + " to " + std::to_string(last) + " deviations",
         "draw in Float64, or nearer to the mean");
}

}  // namespace

Array exponential(Rng& rng, const Shape& shape, const Array& rate, const ArrayOptions& options) {
  const DrawPlace at("exponential", options, {&rate});
  require_positive("exponential", rate);
  return at.finished(unit_exponential(rng, shape, at.drawn) / at.parameter(rate), shape);
}

Array laplace(Rng& rng, const Shape& shape, const Array& mean, const Array& scale, const ArrayOptions& options) {
  const DrawPlace at("laplace", options, {&mean, &scale});
  require_positive("laplace", scale);
  // One draw gives the side and, doubled, a number in [0, 1) for the distance: both steps are exact.
  const Array u = draw(rng, shape, at.drawn), left = u < 0.5, twice = where(left, 2.0 * u, 2.0 * u - 1.0);
  const Array distance = log1p(-twice) * at.parameter(scale);
  return at.finished(at.parameter(mean) + where(left, distance, -distance), shape);
}

Array gumbel(Rng& rng, const Shape& shape, const Array& location, const Array& scale, const ArrayOptions& options) {
  const DrawPlace at("gumbel", options, {&location, &scale});
  require_positive("gumbel", scale);
  return at.finished(at.parameter(location) + at.parameter(scale) * unit_gumbel(rng, shape, at.drawn), shape);
}

Array truncated_normal(Rng& rng, const Shape& shape, const Array& mean, const Array& deviation, const Array& low,
                       const Array& high, const ArrayOptions& options) {
  const DrawPlace at("truncated_normal", options, {&mean, &deviation, &low, &high});
  require_positive("truncated_normal", deviation);
  require_near(mean, deviation, low, high, at.drawn);
  constexpr double root_half = 0x1.6a09e667f3bcdp-1, root_two = 0x1.6a09e667f3bcdp0;
  const Array middle = at.parameter(mean), width = at.parameter(deviation), first = at.parameter(low),
              last = at.parameter(high);
  const Array below = erf((first - middle) * root_half / width), above = erf((last - middle) * root_half / width);
  const Array u = draw(rng, shape, at.drawn);
  const Array x = middle + width * root_two * erfinv(below + u * (above - below));
  return at.finished(clamp(x, first, last), shape);
}

Array gamma(Rng& rng, const Shape& shape, const Array& concentration, const Array& scale, const ArrayOptions& options) {
  const DrawPlace at("gamma", options, {&concentration, &scale});
  require_positive("gamma", concentration);
  require_positive("gamma", scale);
  const GammaParts parts = gamma_parts(rng, shape, at.typed(concentration), at.drawn);
  return at.finished(parts.larger * exp(parts.log_factor) * at.parameter(scale), shape);
}

Array beta(Rng& rng, const Shape& shape, const Array& a, const Array& b, const ArrayOptions& options) {
  const DrawPlace at("beta", options, {&a, &b});
  require_positive("beta", a);
  require_positive("beta", b);
  const GammaParts x = gamma_parts(rng, shape, at.typed(a), at.drawn);
  const GammaParts y = gamma_parts(rng, shape, at.typed(b), at.drawn);
  return at.finished(sigmoid((log(x.larger) + x.log_factor) - (log(y.larger) + y.log_factor)), shape);
}

Array exponential(const Shape& shape, const Array& rate, const ArrayOptions& options) {
  return exponential(default_rng(), shape, rate, options);
}
Array laplace(const Shape& shape, const Array& mean, const Array& scale, const ArrayOptions& options) {
  return laplace(default_rng(), shape, mean, scale, options);
}
Array gumbel(const Shape& shape, const Array& location, const Array& scale, const ArrayOptions& options) {
  return gumbel(default_rng(), shape, location, scale, options);
}
Array truncated_normal(const Shape& shape, const Array& mean, const Array& deviation, const Array& low,
                       const Array& high, const ArrayOptions& options) {
  return truncated_normal(default_rng(), shape, mean, deviation, low, high, options);
}
Array gamma(const Shape& shape, const Array& concentration, const Array& scale, const ArrayOptions& options) {
  return gamma(default_rng(), shape, concentration, scale, options);
}
Array beta(const Shape& shape, const Array& a, const Array& b, const ArrayOptions& options) {
  return beta(default_rng(), shape, a, b, options);
}

Array rand_like(const Array& x) {
  const DeviceScope scope(*x.node());
  return uniform(x.shape(), 0, 1, x.dtype());
}
Array randn_like(const Array& x) {
  const DeviceScope scope(*x.node());
  return normal(x.shape(), 0, 1, x.dtype());
}

}  // namespace rosin
