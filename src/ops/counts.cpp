// Counts, classes and choices at random. Read first: distribution_parts.hpp.
#include <rosin/distributions.hpp>

#include <cmath>
#include <numbers>

#include <rosin/compose.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/search.hpp>
#include <rosin/sort.hpp>

#include "ops/distribution_parts.hpp"

namespace rosin {
namespace {

/// Of rates below 10 more than 40 comes once in 10^13.
constexpr double few = 10;
constexpr int most_of_few = 40;
/// Near a rate of 10 one candidate in four is refused, of large ones one in ten.
constexpr int poisson_candidates = 12;

/// The number of values of the distribution function that u has passed. Where their sum has come to its end, rounded, u
/// may lie behind it: counts whose probability u cannot tell from 0 are not taken.
Array few_counts(const Array& rate, const Array& u) {
  const double least = u.dtype() == Float64 ? 0x1p-55 : 0x1p-26;
  Array term = exp(-rate), passed = term, count;
  for (int k = 1; k <= most_of_few; ++k) {
    term = term * rate * (1.0 / k);
    const Array reached = logical_and(u >= passed, term > least);
    count = k == 1 ? cast(reached, u.dtype()) : where(reached, static_cast<double>(k), count);
    passed = passed + term;
  }
  return count;
}

/// log(rate^k * e^-rate / k!) for whole k >= 0: Stirling's series, and the difference of two large numbers by its own
/// function, so that nothing is lost.
Array log_probability(const Array& k, const Array& rate) {
  const Array n = max(k, 1.0), off = (n - rate) / rate;
  const Array away = rate * ((1.0 + off) * log1p(off) - off);
  const Array inverse = reciprocal(n), stirling = inverse * (1.0 / 12 - square(inverse) * (1.0 / 360));
  return where(k > 0, -away - 0.5 * log(2 * std::numbers::pi * n) - stirling, -rate);
}

/// Hormann's PTRS for rates of 10 and more.
Array many_counts(Rng& rng, const Shape& shape, const Array& rate, DType type) {
  const Array b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  const Array inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze_below = 0.9277 - 3.6224 / (b - 2.0);
  Array count, open;  // open: no candidate was accepted yet
  for (int i = 0; i < poisson_candidates; ++i) {
    const Array u = draw(rng, shape, type) - 0.5, v = draw(rng, shape, type);
    const Array edge = 0.5 - abs(u);
    const Array k = floor((2.0 * a / edge + b) * u + rate + 0.43);
    const Array at_once = logical_and(edge >= 0.07, v <= squeeze_below);
    const Array outside = logical_or(k < 0, logical_and(edge<0.013, v> edge));
    const Array bound = log_probability(max(k, 0.0), rate);
    const Array inside = log(v * inverse_alpha / (a / square(edge) + b)) <= bound;
    const Array accepted = logical_or(at_once, logical_and(logical_not(outside), inside));
    count = i == 0 ? where(accepted, k, floor(rate)) : where(logical_and(accepted, open), k, count);
    open = i == 0 ? logical_not(accepted) : logical_and(open, logical_not(accepted));
  }
  return count;
}

const bool named[] = {name_function(categorical, "categorical")};

void check_draws(std::string_view op, int64_t draws) {
  if (draws >= 0) return;
  refuse(ErrorKind::argument, op, "the number of draws must be 0 or more", std::to_string(draws), "ask for a count");
}

/// Logits or weights of classes along dim 0.
void check_classes(std::string_view op, const Array& x, int64_t draws) {
  check_draws(op, draws);
  if (x.is_nothing()) refuse(ErrorKind::argument, op, "there must be classes", "nothing (an empty Array)", "give them");
  if (x.rank() == 0) refuse(ErrorKind::shape, op, "classes stand along dim 0", "a 0-d array", "give (classes, batch)");
  if (x.size(0) == 0)
    refuse(ErrorKind::argument, op, "there must be classes", to_string(x.shape()), "give at least one");
}

/// Logits in the type of draws. Error (dtype): they are no floats.
Array drawn_logits(std::string_view op, const Array& logits) {
  if (!is_float(logits.dtype())) {
    refuse(ErrorKind::dtype, op, "logits are floats", to_string(logits.dtype()), "use multinomial for weights");
  }
  return size_of(logits.dtype()) == 2 ? cast(logits, Float32) : logits;
}

/// Weights in the type of draws.
Array drawn_weights(const Array& weights) {
  return is_float(weights.dtype()) && size_of(weights.dtype()) > 2 ? weights : cast(weights, Float32);
}

/// Classes whose shares of the sum of the weights (classes, batch...) hold what is drawn: (draws, batch...). The sums
/// never descend, and stay as they are at a weight of 0, however they are rounded.
Array classes_by_share(Rng& rng, const Array& weights, int64_t draws) {
  const DeviceScope scope(weights.node()->device);
  const Array counts = gt(weights, 0), added = cumsum(where(counts, weights, 0), 0);
  const Array sums = cummax(where(counts, added, 0), 0);
  const int64_t last = weights.size(0) - 1;
  const Array drawn = draw(rng, with_size(weights.shape(), 0, draws), weights.dtype()) * slice(sums, 0, last, last + 1);
  return min(searchsorted(sums, drawn, true), last);
}

Array keys(Rng& rng, const Array& logits) {
  const DeviceScope scope(logits.node()->device);
  return logits + unit_gumbel(rng, logits.shape(), logits.dtype());
}

}  // namespace

Array poisson(Rng& rng, const Shape& shape, const Array& rate, const ArrayOptions& options) {
  const DType type = options.type_or(Int32);
  if (!is_integer(type) && !is_float(type)) {
    refuse(ErrorKind::dtype, "poisson", "counts are integers or floats", to_string(type), "cast the result");
  }
  const DrawPlace at("poisson", type, type == Float64 ? Float64 : Float32, options, {&rate});
  require_number(
      "poisson", rate, [](double value) { return value >= 0; }, "from 0 on");
  const Array of = at.typed(rate), u = draw(rng, shape, at.drawn);
  const Array many = many_counts(rng, shape, max(of, few), at.drawn);
  return at.finished(where(of < few, few_counts(min(of, few), u), many), shape);
}

Array categorical(Rng& rng, const Array& logits) {
  check_classes("categorical", logits, 0);
  return onecold(keys(rng, drawn_logits("categorical", logits)));
}

Array categorical(Rng& rng, const Array& logits, int64_t draws) {
  check_classes("categorical", logits, draws);
  return classes_by_share(rng, softmax(drawn_logits("categorical", logits), 0), draws);
}

Array multinomial(Rng& rng, const Array& weights, int64_t draws, bool replacement) {
  check_classes("multinomial", weights, draws);
  const Array known = drawn_weights(weights);
  if (replacement) return classes_by_share(rng, known, draws);
  if (draws > weights.size(0)) {
    refuse(ErrorKind::argument, "multinomial", "without replacement there are no more draws than classes",
           std::to_string(draws) + " of " + std::to_string(weights.size(0)), "draw fewer, or with replacement");
  }
  return topk(keys(rng, log(known)), draws, 0).indices;
}

Array choice(Rng& rng, const Array& x, int64_t draws, const ChoiceOptions& options) {
  check_draws("choice", draws);
  if (x.is_nothing())
    refuse(ErrorKind::argument, "choice", "there must be an array", "nothing", "give it a value first");
  const int dim = checked_dim("choice", options.dim, x.shape());
  const int64_t size = x.size(dim);
  if (size == 0 || (!options.replacement && draws > size)) {
    refuse(ErrorKind::argument, "choice", "there must be slices, without replacement as many as draws",
           std::to_string(draws) + " of " + std::to_string(size), "draw fewer, or with replacement");
  }
  const DeviceScope scope(x.node()->device);
  if (!options.weights.is_nothing()) {
    if (options.weights.shape() != Shape{size}) {
      refuse(ErrorKind::shape, "choice", "there is one weight for each of " + std::to_string(size) + " slices",
             to_string(options.weights.shape()), "give a vector");
    }
    return gather(x, multinomial(rng, options.weights, draws, options.replacement), dim);
  }
  return gather(x, options.replacement ? randint(rng, 0, size, {draws}) : slice(permutation(rng, size), 0, 0, draws),
                dim);
}

Array poisson(const Shape& shape, const Array& rate, const ArrayOptions& options) {
  return poisson(default_rng(), shape, rate, options);
}
Array categorical(const Array& logits) { return categorical(default_rng(), logits); }
Array categorical(const Array& logits, int64_t draws) { return categorical(default_rng(), logits, draws); }
Array multinomial(const Array& weights, int64_t draws, bool replacement) {
  return multinomial(default_rng(), weights, draws, replacement);
}
Array choice(const Array& x, int64_t draws, const ChoiceOptions& options) {
  return choice(default_rng(), x, draws, options);
}

}  // namespace rosin
