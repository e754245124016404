// Losses of distances and margins, and of a predicted variance: see rosin/loss.hpp.
#include <rosin/loss.hpp>

#include <cmath>
#include <numbers>
#include <string>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "loss/loss_parts.hpp"
#include "ops/autocast_casts.hpp"

namespace rosin {

Array gaussian_nll_loss(const Array& given, const Array& y, const Array& variance, const GaussianOptions& options) {
  const Array yhat = widened(given);
  check_sizes("gaussian_nll_loss", yhat, y);
  check_sizes("gaussian_nll_loss", yhat, variance);
  const Array least = max(variance, options.eps);
  const Array losses = (log(least) + square(yhat - labels_for(yhat, y)) / least) * 0.5;
  return aggregated(options.full ? losses + 0.5 * std::log(2 * std::numbers::pi) : losses, options.agg);
}

Array margin_ranking_loss(const Array& a, const Array& b, const Array& y, const RankingOptions& options) {
  check_sizes("margin_ranking_loss", a, b);
  check_sizes("margin_ranking_loss", a, y);
  return aggregated(max(0, labels_for(a, y) * (b - widened(a)) + options.margin), options.agg);
}

Array cosine_embedding_loss(const Array& first, const Array& second, const Array& y, const CosineOptions& options) {
  const Array a = widened(first), b = widened(second);
  constexpr const char* name = "cosine_embedding_loss";
  check_sizes(name, a, b);
  const auto along = [&](const Array& products) { return sum(products, options.dims); };
  const Array cosine = along(a * b) / sqrt((along(square(a)) + 1e-12) * (along(square(b)) + 1e-12));
  const Array sign =
      y.rank() == a.rank() - 1 ? unsqueeze(y, options.dims < 0 ? options.dims + a.rank() : options.dims) : y;
  check_sizes(name, cosine, sign);
  return aggregated(where(gt(sign, 0), 1 - cosine, max(0, cosine - options.margin)), options.agg);
}

namespace {

void check_positive(const char* what, double value, const char* cure) {
  if (value > 0) return;
  throw Error(ErrorKind::argument, std::string("triplet_margin_loss: the ") + what + " must be positive; got " +
                                       std::to_string(value) + "; " + cure);
}

}  // namespace

Array triplet_margin_loss(const Array& anchor, const Array& positive, const Array& negative,
                          const TripletOptions& options) {
  check_sizes("triplet_margin_loss", anchor, positive);
  check_sizes("triplet_margin_loss", anchor, negative);
  check_positive("margin", options.margin, "the default is 1");
  check_positive("order of the norm", options.p, "the default is 2");
  const auto distance = [&](const Array& a, const Array& b) {
    return norm(widened(a) - widened(b) + options.eps, options.dims, options.p);
  };
  const Array far = distance(anchor, negative);
  const Array apart = options.swap ? min(far, distance(positive, negative)) : far;
  return aggregated(max(0, distance(anchor, positive) - apart + options.margin), options.agg);
}

}  // namespace rosin
