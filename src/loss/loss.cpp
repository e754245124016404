// Losses: see rosin/loss.hpp. All are made of recorded ops; their gradients follow.
#include <rosin/loss.hpp>

#include <algorithm>
#include <limits>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/reduce.hpp>

#include "loss/loss_parts.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/loss_terms.hpp"
#include "ops/reduction.hpp"

namespace rosin {
namespace {

double machine_epsilon(DType type) {
  switch (type) {
    case Float64: return std::numeric_limits<double>::epsilon();
    case Float16: return 0x1p-10;
    case BFloat16: return 0x1p-7;
    default: return std::numeric_limits<float>::epsilon();
  }
}
double eps_for(const Array& yhat, double wanted) { return wanted < 0 ? machine_epsilon(yhat.dtype()) : wanted; }

/// yhat - y; of integers as Float32, as unsigned ones have no negative differences.
Array distance_of(const Array& yhat, const Array& y) {
  const auto is_whole = [](const Array& x) { return !is_float(x.dtype()) && !is_complex(x.dtype()); };
  return is_whole(yhat) && is_whole(y) ? cast(yhat, Float32) - y : yhat - y;
}

/// (1 - p)^n, made of products where n is a whole number; else 1 - p is at least eps, as powers of numbers below 0 are
/// NaN and slopes at 0 infinite.
Array doubt_power(const Array& p, double n, double eps) {
  const auto whole = static_cast<int64_t>(n);
  return static_cast<double>(whole) == n ? pow(1 - p, whole) : pow(max(1 - p, eps), n);
}

/// x * log(y), 0 where x is 0, with finite gradients there.
Array xlogy(const Array& x, const Array& y) {
  const Array zero = eq(x, 0);
  return where(zero, 0, x * log(where(zero, 1, y)));
}

/// The sum over classes, whose dim disappears into size 1.
Array over_classes(const Array& terms, int dims) { return sum(terms, dims); }

/// agg(-sum(terms, dims)); the mean of all is one sum, which keeps training steps short.
Array negated_sum(const Array& terms, int dims, const Aggregation& agg) {
  if (!agg.is_mean() || terms.count() == 0) return aggregated(-over_classes(terms, dims), agg);
  return sum(terms) * (-static_cast<double>(terms.size(dims)) / static_cast<double>(terms.count()));
}

}  // namespace

Array mse(const Array& given, const Array& y, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("mse", yhat, y, Numbers::complex_too);
  const Array distance = distance_of(yhat, y);
  return aggregated(is_complex(distance.dtype()) ? squared_size(distance) : square(distance), options.agg);
}

Array mae(const Array& given, const Array& y, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("mae", yhat, y, Numbers::complex_too);
  return aggregated(abs(distance_of(yhat, y)), options.agg);
}

Array msle(const Array& given, const Array& labels, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("msle", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double eps = eps_for(yhat, options.eps);
  return aggregated(square(log((yhat + eps) / (y + eps))), options.agg);
}

Array huber_loss(const Array& given, const Array& y, const HuberOptions& options) {
  const Array yhat = widened(given);
  check_sizes("huber_loss", yhat, y, Numbers::complex_too);
  const Array distance = abs(distance_of(yhat, y));
  const double delta = options.delta;
  // The square sees nothing infinite, whose slope would be NaN where it is not chosen.
  const Array near = square(min(distance, delta)) * 0.5;
  return aggregated(where(lt(distance, delta), near, delta * (distance - delta / 2)), options.agg);
}

Array crossentropy(const Array& given, const Array& labels, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("crossentropy", yhat, labels);
  const Array y = labels_for(yhat, labels);
  return negated_sum(xlogy(y, yhat + eps_for(yhat, options.eps)), options.dims, options.agg);
}

Array logitcrossentropy(const Array& given, const Array& y, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("logitcrossentropy", yhat, y);
  return negated_sum(masked_product(y, logsoftmax_in_loss(yhat, options.dims)), options.dims, options.agg);
}

Array binarycrossentropy(const Array& given, const Array& labels, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("binarycrossentropy", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double eps = eps_for(yhat, options.eps);
  return aggregated(-xlogy(y, yhat + eps) - xlogy(1 - y, 1 - yhat + eps), options.agg);
}

Array logitbinarycrossentropy(const Array& given, const Array& labels, const LogitBinaryOptions& options) {
  const Array yhat = widened(given);
  check_sizes("logitbinarycrossentropy", yhat, labels);
  const Array y = labels_for(yhat, labels);
  if (options.pos_weight.is_nothing()) return aggregated(logit_entropy(yhat, y), options.agg);
  const Array weight = labels_for(yhat, options.pos_weight) * y;
  return aggregated(masked_product(weight, softplus(-yhat)) + masked_product(1 - y, softplus(yhat)), options.agg);
}

Array kldivergence(const Array& given, const Array& labels, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("kldivergence", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const Array entropy = aggregated(over_classes(xlogy(y, y), options.dims), options.agg);
  return entropy + crossentropy(yhat, y, options);
}

Array poisson_loss(const Array& given, const Array& labels, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("poisson_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  return aggregated(yhat - xlogy(y, yhat), options.agg);
}

Array hinge_loss(const Array& given, const Array& y, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("hinge_loss", yhat, y);
  return aggregated(max(0, 1 - yhat * y), options.agg);
}

Array squared_hinge_loss(const Array& given, const Array& y, const LossOptions& options) {
  const Array yhat = widened(given);
  check_sizes("squared_hinge_loss", yhat, y);
  return aggregated(square(max(0, 1 - yhat * y)), options.agg);
}

Array dice_coeff_loss(const Array& given, const Array& labels, const DiceOptions& options) {
  const Array yhat = widened(given);
  check_sizes("dice_coeff_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double smooth = options.smooth;
  return 1 - (2 * sum(y * yhat) + smooth) / (sum(square(y)) + sum(square(yhat)) + smooth);
}

Array tversky_loss(const Array& given, const Array& labels, const TverskyOptions& options) {
  const Array yhat = widened(given);
  check_sizes("tversky_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double beta = options.beta;
  const Array hit = y * yhat;
  const Array weighed = hit + beta * (1 - y) * yhat + (1 - beta) * y * (1 - yhat);
  return 1 - (sum(hit) + 1) / (sum(weighed) + 1);
}

Array binary_focal_loss(const Array& given, const Array& labels, const FocalOptions& options) {
  const Array yhat = widened(given);
  check_sizes("binary_focal_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double eps = eps_for(yhat, options.eps);
  const Array p = y * yhat + (1 - y) * (1 - yhat) + eps;
  return aggregated(-doubt_power(p, options.gamma, eps) * log(p), options.agg);
}

Array focal_loss(const Array& given, const Array& labels, const FocalOptions& options) {
  const Array yhat = widened(given);
  check_sizes("focal_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  const double eps = eps_for(yhat, options.eps);
  const Array moved = yhat + eps;
  return negated_sum(doubt_power(moved, options.gamma, eps) * xlogy(y, moved), options.dims, options.agg);
}

Array siamese_contrastive_loss(const Array& given, const Array& labels, const SiameseOptions& options) {
  const Array yhat = widened(given);
  check_sizes("siamese_contrastive_loss", yhat, labels);
  const Array y = labels_for(yhat, labels);
  if (options.margin < 0) {
    throw Error(ErrorKind::argument, "siamese_contrastive_loss: margin must be non-negative; got " +
                                         std::to_string(options.margin) + "; use the default 1");
  }
  return aggregated(masked_product(1 - y, square(yhat)) + masked_product(y, square(max(0, options.margin - yhat))),
                    options.agg);
}

namespace {

void check_alpha(const char* function, double alpha) {
  if (alpha > 0 && alpha < 1) return;
  throw Error(ErrorKind::argument, std::string(function) + ": alpha must be between 0 and 1; got " +
                                       std::to_string(alpha) + "; use a small number such as 0.1");
}

}  // namespace

Array label_smoothing(const Array& y, double alpha, int dim) {
  check_alpha("label_smoothing", alpha);
  return y * (1 - alpha) + alpha / static_cast<double>(y.size(dim));
}

Array binary_label_smoothing(const Array& y, double alpha) {
  check_alpha("binary_label_smoothing", alpha);
  return y * (1 - alpha) + alpha / 2;
}

}  // namespace rosin
