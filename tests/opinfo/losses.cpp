// Rows of losses. Read first: call.hpp.
#include <cmath>
#include <numbers>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

Array each(const Array& losses) { return losses; }
Array total(const Array& losses) { return sum(losses); }

Aggregation aggregation(Call& c) {
  c.has(-1, "size_average");
  c.has(-1, "reduce");
  const std::string name = c.text(-1, "reduction", "mean");
  if (name == "none") return each;
  if (name == "sum") return total;
  return {};
}
/// The same for losses of rows that no function here has.
Array aggregated(Call& c, const Array& losses) {
  const Aggregation agg = aggregation(c);
  return agg.is_mean() ? mean(losses) : agg(losses);
}

using Loss = Array (*)(const Array&, const Array&, const LossOptions&);
template <Loss f> Array loss(Call& c) { return f(c.array(0), c.array(1), {.agg = aggregation(c)}); }

Array binary(Call& c) {
  const Array weight = c.array_or_nothing(2, "weight");
  const LossOptions options{.agg = weight.is_nothing() ? aggregation(c) : Aggregation(each), .eps = 0};
  const Array losses = binarycrossentropy(c.array(0), c.array(1), options);
  return weight.is_nothing() ? losses : aggregated(c, losses * weight);
}
Array binary_of_logits(Call& c) {
  const Array weight = c.array_or_nothing(2, "weight");
  const Array losses = logitbinarycrossentropy(c.array(0), c.array(1),
                                               {.agg = each, .pos_weight = c.array_or_nothing(-1, "pos_weight")});
  return aggregated(c, weight.is_nothing() ? losses : losses * weight);
}

/// PyTorch's classes are dim 1, or dim 0 of a vector; rosin's place of the labels' dim is told by `dims`.
LabelOptions label_options(Call& c, const Array& x) {
  LabelOptions options;
  options.dims = x.rank() == 1 ? 0 : x.rank() - 2;
  options.agg = aggregation(c);
  options.ignore = c.integer(-1, "ignore_index", -100);
  options.weights = c.array_or_nothing(-1, "weight");
  options.smoothing = c.real(-1, "label_smoothing", 0);
  return options;
}
Array of_labels(Call& c) {
  const Array x = c.array(0), labels = c.array(1);
  LabelOptions options = label_options(c, x);
  if (is_float(labels.dtype())) options.ignore.reset();
  return labelcrossentropy(x, labels, options);
}
/// Of logarithms of any numbers, which logsoftmax would change: the places alone.
Array negative_log(Call& c) {
  const Array x = c.array(0), labels = c.array(1);
  const LabelOptions options = label_options(c, x);
  const Array valid = labels != *options.ignore, safe = where(valid, labels, 0);
  const Array picked = squeeze(take_along(x, unsqueeze(safe, options.dims), options.dims), options.dims);
  Array weights = cast(valid, x.dtype());
  if (!options.weights.is_nothing()) weights = weights * gather(options.weights, safe, 0);
  const Array losses = where(valid, -picked * weights, 0);
  return options.agg.is_mean() ? sum(losses) / sum(weights) : options.agg(losses);
}

Array multi_margin(Call& c) {
  const Array x = c.array(0);
  MultiMarginOptions options;
  options.agg = aggregation(c);
  options.margin = c.real(-1, "margin", 1);
  options.p = c.real(-1, "p", 1);
  options.weights = c.array_or_nothing(-1, "weight");
  if (x.rank() > 1) return multi_margin_loss(x, c.array(1), options);
  return multi_margin_loss(reshape(x, {-1}), reshape(c.array(1), Shape()), options);
}

Array divergence(Call& c) {
  const Array x = c.array(0), y = c.array(1);
  const Array losses =
      c.flag(-1, "log_target", false) ? exp(y) * (y - x) : where(y > 0, y * (log(where(y > 0, y, 1)) - x), 0);
  if (c.text(-1, "reduction", "mean") == "batchmean")
    return sum(losses) / static_cast<double>(x.rank() ? x.size(-1) : 1);
  return aggregated(c, losses);
}

Array poisson(Call& c) {
  const Array x = c.array(0), y = c.array(1);
  const bool logarithm = c.flag(-1, "log_input", true);
  const double eps = c.real(-1, "eps", 1e-8);
  Array losses = logarithm ? exp(x) - y * x : x - y * log(x + eps);
  if (c.flag(-1, "full", false)) {
    const Array safe = where(y > 1, y, 2);
    losses = losses + where(y > 1, safe * log(safe) - safe + 0.5 * log(2 * std::numbers::pi * safe), 0);
  }
  return aggregated(c, losses);
}

Array smooth(Call& c) {
  const double beta = c.real(-1, "beta", 1);
  if (beta == 0) return mae(c.array(0), c.array(1), {.agg = aggregation(c)});
  return aggregated(c, huber_loss(c.array(0), c.array(1), {.agg = each, .delta = beta}) / beta);
}

/// `agg` gets a dim of size 1 here, which PyTorch drops.
Array without_features(Call& c, const Array& losses) {
  return c.text(-1, "reduction", "mean") == "none" ? squeeze(losses, 0) : losses;
}

Array triplet(Call& c) {
  TripletOptions options;
  options.agg = aggregation(c);
  options.margin = c.real(-1, "margin", 1);
  options.p = c.real(-1, "p", 2);
  options.eps = c.real(-1, "eps", 1e-6);
  options.swap = c.flag(-1, "swap", false);
  return without_features(c, triplet_margin_loss(c.array(0), c.array(1), c.array(2), options));
}

Array embedding_cosine(Call& c) {
  const CosineOptions options{.agg = aggregation(c), .margin = c.real(-1, "margin", 0)};
  const Array a = c.array(0), y = c.array(2);
  return without_features(c, cosine_embedding_loss(a, c.array(1), y.rank() < a.rank() ? unsqueeze(y, 0) : y, options));
}

Array gaussian(Call& c) {
  const GaussianOptions options{
      .agg = aggregation(c), .full = c.flag(-1, "full", false), .eps = c.real(-1, "eps", 1e-6)};
  const Array x = c.array(0);
  Array variance = c.array(2);
  if (variance.rank() > 0 && variance.rank() == x.rank() - 1) variance = unsqueeze(variance, 0);
  return gaussian_nll_loss(x, expand(c.array(1), x.shape()), expand(variance, x.shape()), options);
}

Array hinge_embedding(Call& c) {
  const Array x = c.array(0), y = c.array(1);
  const double margin = c.real(-1, "margin", 1);
  return aggregated(c, where(y != 1, relu(margin - x), 0) + where(y != -1, x, 0));
}

Array soft_margins(Call& c) {
  const Array x = c.array(0), y = c.array(1);
  Array losses = -(y * logsigmoid(x) + (1 - y) * logsigmoid(-x));
  if (c.has(2, "weight")) losses = losses * c.array(2, "weight");
  return aggregated(c, squeeze(mean(losses, 0), 0));
}

const Table table("losses", {
                                {"nn.functional.mse_loss", loss<mse>},
                                {"nn.functional.l1_loss", loss<mae>},
                                {"nn.functional.huber_loss",
                                 [](Call& c) {
                                   return huber_loss(c.array(0), c.array(1),
                                                     {.agg = aggregation(c), .delta = c.real(-1, "delta", 1)});
                                 }},
                                {"nn.functional.smooth_l1_loss", smooth},
                                {"nn.functional.binary_cross_entropy", binary},
                                {"nn.functional.binary_cross_entropy_with_logits", binary_of_logits},
                                {"nn.functional.cross_entropy", of_labels},
                                {"nn.functional.nll_loss", negative_log},
                                {"nn.functional.kl_div", divergence},
                                {"nn.functional.poisson_nll_loss", poisson},
                                {"nn.functional.gaussian_nll_loss", gaussian},
                                {"nn.functional.multi_margin_loss", multi_margin},
                                {"nn.functional.margin_ranking_loss",
                                 [](Call& c) {
                                   return margin_ranking_loss(
                                       c.array(0), c.array(1), c.array(2),
                                       {.agg = aggregation(c), .margin = c.real(-1, "margin", 0)});
                                 }},
                                {"nn.functional.cosine_embedding_loss", embedding_cosine},
                                {"nn.functional.triplet_margin_loss", triplet},
                                {"nn.functional.hinge_embedding_loss", hinge_embedding},
                                {"nn.functional.soft_margin_loss",
                                 [](Call& c) { return aggregated(c, softplus(-c.array(1) * c.array(0))); }},
                                {"nn.functional.multilabel_soft_margin_loss", soft_margins},
                            });

}  // namespace
}  // namespace rosin::opinfo
