// Initialisers that are one draw; init_shapes.cpp has those that are computed on the host.
#include <rosin/init.hpp>

#include <cmath>

#include <rosin/create.hpp>
#include <rosin/error.hpp>

namespace rosin {
namespace {

Rng& generator(Rng* rng) { return rng ? *rng : default_rng(); }

Array uniform_within(const Shape& shape, double bound, Rng* rng, DType type) {
  return uniform(generator(rng), shape, -bound, bound, type);
}
Array normal_with(const Shape& shape, double deviation, Rng* rng, DType type) {
  return normal(generator(rng), shape, 0, deviation, type);
}

double fan_sum(const Shape& shape) {
  const Fan fan = nfan(shape);
  return static_cast<double>(fan.in + fan.out);
}
double fan_in(const Shape& shape) { return static_cast<double>(nfan(shape).in); }

}  // namespace

Fan nfan(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {1, shape[0]};
  if (rank == 2) return {shape[1], shape[0]};
  int64_t kernel = 1;
  for (int d = 0; d < rank - 2; ++d) kernel *= shape[d];
  return {kernel * shape[-2], kernel * shape[-1]};
}

Array glorot_uniform(const Shape& shape) { return glorot_uniform(shape, GainOptions{}); }
Array glorot_uniform(const Shape& shape, const GainOptions& options) {
  return uniform_within(shape, options.gain * std::sqrt(6 / fan_sum(shape)), options.rng, options.type);
}

Array glorot_normal(const Shape& shape) { return glorot_normal(shape, GainOptions{}); }
Array glorot_normal(const Shape& shape, const GainOptions& options) {
  return normal_with(shape, options.gain * std::sqrt(2 / fan_sum(shape)), options.rng, options.type);
}

Array kaiming_uniform(const Shape& shape) { return kaiming_uniform(shape, KaimingOptions{}); }
Array kaiming_uniform(const Shape& shape, const KaimingOptions& options) {
  return uniform_within(shape, options.gain * std::sqrt(3 / fan_in(shape)), options.rng, options.type);
}

Array kaiming_normal(const Shape& shape) { return kaiming_normal(shape, KaimingOptions{}); }
Array kaiming_normal(const Shape& shape, const KaimingOptions& options) {
  return normal_with(shape, options.gain / std::sqrt(fan_in(shape)), options.rng, options.type);
}

Array lecun_normal(const Shape& shape) { return lecun_normal(shape, InitOptions{}); }
Array lecun_normal(const Shape& shape, const InitOptions& options) {
  return truncated_normal(shape, {.std = std::sqrt(1 / fan_in(shape)), .rng = options.rng, .type = options.type});
}

Array zeros32(const Shape& shape) { return zeros(shape); }
Array ones32(const Shape& shape) { return ones(shape); }
Array rand32(const Shape& shape) { return rand(shape); }
Array randn32(const Shape& shape) { return randn(shape); }

Array Init::operator()(const Shape& shape) const {
  Array made = make_(shape);
  if (made.is_nothing() || made.shape() != shape) {
    throw Error(ErrorKind::shape, "init: the initialiser must give an array of size " + to_string(shape) + "; got " +
                                      (made.is_nothing() ? "nothing" : to_string(made.shape())) +
                                      "; use the shape it is given");
  }
  eval(made);
  return made;
}

}  // namespace rosin
