// Rectangles that are erased or taken from other pictures, and mixtures (augment.hpp). Read first: augment.cpp.
#include <cmath>
#include <string>

#include <rosin/augment.hpp>
#include <rosin/distributions.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "data/augment_parts.hpp"

namespace rosin {
namespace {

/// Bool (width, height, 1, batch or 1): from the first place on, before the last, along both dims.
Array rectangle(const Array& x, const Array& left, const Array& right, const Array& top, const Array& bottom) {
  const Array column = places_along(x, 0, x.size(0)), row = places_along(x, 1, x.size(1));
  return (column >= left) & (column < right) & (row >= top) & (row < bottom);
}

void check_mixable(const char* op, const Array& x, const Array& y, double alpha) {
  check_pictures(op, x);
  if (!(alpha > 0)) {
    throw Error(ErrorKind::argument, std::string(op) + ": alpha is above 0; got " + std::to_string(alpha));
  }
  if (y.is_nothing() || y.rank() < 1 || y.size(-1) != x.size(3)) {
    throw Error(ErrorKind::shape, std::string(op) + ": targets are (classes, batch), as many as pictures; got " +
                                      (y.is_nothing() ? "nothing" : to_string(y.shape())) + " for " +
                                      to_string(x.shape()) + "; write onehotbatch(labels, classes)");
  }
}

/// Targets mixed by the share (1, 1, 1, 1) of the first.
Array mixed_targets(const Array& y, const Array& others, const Array& share) {
  const Array mine = is_float(y.dtype()) ? y : cast(y, Float32), first = cast(reshape(share, Shape{}), mine.dtype());
  return first * mine + (1 - first) * gather(mine, others);
}

}  // namespace

Array random_erasing(Rng& rng, const Array& x, const ErasingOptions& options) {
  check_pictures("random_erasing", x);
  const auto width = static_cast<double>(x.size(0)), height = static_cast<double>(x.size(1));
  const Array area = draws_for(rng, x, options.area[0], options.area[1]) * (width * height);
  const Array ratio = exp(draws_for(rng, x, std::log(options.ratio[0]), std::log(options.ratio[1])));
  const Array across = clamp(round(sqrt(area / ratio)), 0, width), down = clamp(round(sqrt(area * ratio)), 0, height);
  const Array left = floor(draws_for(rng, x, 0, 1) * (width - across + 1));
  const Array top = floor(draws_for(rng, x, 0, 1) * (height - down + 1));
  const Array erased = rectangle(x, left, left + across, top, top + down) & (draws_for(rng, x, 0, 1) < options.p);
  return where(erased, Array(options.value), x);
}

Array random_erasing(const Array& x, const ErasingOptions& options) {
  return random_erasing(default_rng(), x, options);
}

std::pair<Array, Array> mixup(Rng& rng, const Array& x, const Array& y, double alpha) {
  check_mixable("mixup", x, y, alpha);
  const Array share = beta(rng, {1, 1, 1, 1}, alpha, alpha, for_places(x));
  const Array others = permutation(rng, x.size(3), ArrayOptions(x.device())), first = cast(share, x.dtype());
  return {first * x + (1 - first) * gather(x, others), mixed_targets(y, others, share)};
}

std::pair<Array, Array> mixup(const Array& x, const Array& y, double alpha) {
  return mixup(default_rng(), x, y, alpha);
}

std::pair<Array, Array> cutmix(Rng& rng, const Array& x, const Array& y, double alpha) {
  check_mixable("cutmix", x, y, alpha);
  const ArrayOptions there = for_places(x);
  const auto width = static_cast<double>(x.size(0)), height = static_cast<double>(x.size(1));
  const Array half = 0.5 * sqrt(1 - beta(rng, {1, 1, 1, 1}, alpha, alpha, there));
  const Array middle_x = floor(uniform(rng, {1, 1, 1, 1}, 0, width, there));
  const Array middle_y = floor(uniform(rng, {1, 1, 1, 1}, 0, height, there));
  const Array across = floor(half * width), down = floor(half * height);
  const Array cut = rectangle(x, middle_x - across, middle_x + across, middle_y - down, middle_y + down);
  const Array others = permutation(rng, x.size(3), ArrayOptions(x.device()));
  return {where(cut, gather(x, others), x),
          mixed_targets(y, others, reshape(1 - mean(cast(cut, Float32)), {1, 1, 1, 1}))};
}

std::pair<Array, Array> cutmix(const Array& x, const Array& y, double alpha) {
  return cutmix(default_rng(), x, y, alpha);
}

}  // namespace rosin
