// Rows of the table of ops: losses. Read first: op_table.hpp.
#include <rosin/label_loss.hpp>
#include <rosin/loss.hpp>

#include "op_table.hpp"

namespace rosin::suite {
namespace {

using LossFunction = Array (*)(const Array&, const Array&, const LossOptions&);

OracleCall loss(LossFunction f) {
  return [f](const OracleCase&, const Arrays& x) { return Arrays{f(x[0], x[1], {})}; };
}
Arrays binary_with_logits(const OracleCase& e, const Arrays& x) {
  return {logitbinarycrossentropy(x[0], x[1], {.pos_weight = e.has("pos_weight") ? x[2] : Array()})};
}

Arrays from_labels(const OracleCase& e, const Arrays& x) {
  LabelOptions options;
  options.dims = static_cast<int>(e.number("dim", 0));
  if (e.has("ignore")) options.ignore = e.integers("ignore")[0];
  if (x.size() > 2) options.weights = x[2];
  options.smoothing = e.number("smoothing", 0);
  return {labelcrossentropy(x[0], x[1], options)};
}

Arrays multi_margin(const OracleCase& e, const Arrays& x) {
  return {multi_margin_loss(
      x[0], x[1], {.margin = e.number("margin", 1), .p = e.number("p", 1), .weights = x.size() > 2 ? x[2] : Array()})};
}

Arrays ctc(const OracleCase& e, const Arrays& x) {
  const bool uneven = x.size() > 2;
  return {ctc_loss(
      x[0], x[1],
      {.blank = e.integers("blank")[0], .lengths = uneven ? x[2] : Array(), .label_lengths = uneven ? x[3] : Array()})};
}

Arrays triplet(const OracleCase& e, const Arrays& x) {
  return {triplet_margin_loss(x[0], x[1], x[2],
                              {.margin = e.number("margin", 1), .p = e.number("p", 2), .swap = e.has("swap")})};
}

}  // namespace

std::vector<OpEntry> loss_entries() {
  return {
      {"mse", "mse", loss(mse)},
      {"mae", "mae", loss(mae)},
      {"msle", "msle", loss(msle)},
      {"huber_loss", "huber_loss", [](const OracleCase&, const Arrays& x) { return Arrays{huber_loss(x[0], x[1])}; }},
      {"crossentropy", "crossentropy", loss(crossentropy)},
      {"logitcrossentropy", "logitcrossentropy", loss(logitcrossentropy)},
      {"binarycrossentropy", "binarycrossentropy", loss(binarycrossentropy)},
      {"logitbinarycrossentropy", "logitbinarycrossentropy", binary_with_logits},
      {"kldivergence", "kldivergence", loss(kldivergence)},
      {"poisson_loss", "poisson_loss", loss(poisson_loss)},
      {"hinge_loss", "hinge_loss", loss(hinge_loss)},
      {"squared_hinge_loss", "squared_hinge_loss", loss(squared_hinge_loss)},
      {"dice_coeff_loss", "dice_coeff_loss",
       [](const OracleCase&, const Arrays& x) { return Arrays{dice_coeff_loss(x[0], x[1])}; }},
      {"tversky_loss", "tversky_loss",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{tversky_loss(x[0], x[1], {.beta = e.number("beta", 0.7)})};
       }},
      {"binary_focal_loss", "binary_focal_loss",
       [](const OracleCase&, const Arrays& x) { return Arrays{binary_focal_loss(x[0], x[1])}; }},
      {"focal_loss", "focal_loss", [](const OracleCase&, const Arrays& x) { return Arrays{focal_loss(x[0], x[1])}; }},
      {"siamese_contrastive_loss", "siamese_contrastive_loss",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{siamese_contrastive_loss(x[0], x[1], {.margin = e.number("margin", 1)})};
       }},
      {"labelcrossentropy", "labelcrossentropy", from_labels},
      {"multi_margin_loss", "multi_margin_loss", multi_margin},
      {"ctc_loss", "ctc_loss", ctc},
      {"gaussian_nll_loss", "gaussian_nll_loss",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{gaussian_nll_loss(x[0], x[1], x[2], {.full = e.has("full")})};
       }},
      {"margin_ranking_loss", "margin_ranking_loss",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{margin_ranking_loss(x[0], x[1], x[2], {.margin = e.number("margin", 0)})};
       }},
      {"cosine_embedding_loss", "cosine_embedding_loss",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{cosine_embedding_loss(x[0], x[1], x[2], {.margin = e.number("margin", 0)})};
       }},
      {"triplet_margin_loss", "triplet_margin_loss", triplet},
      {"label_smoothing", "", nullptr},
      {"binary_label_smoothing", "", nullptr}};
}

}  // namespace rosin::suite
