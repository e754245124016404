// Losses: loss(yhat, y) of a model's result yhat and what it should be. The definitions are Flux's, where it has them.
// Read next: label_loss.hpp (labels instead of one-hot arrays).
//
// Sizes of yhat and y must be equal (Error (shape)); y may be a C++ number. y may be Bool, integers, or of yhat's type,
// which the result has. `agg` maps the losses of elements (or of observations, where a loss sums over classes) to the
// result: mean by default, or any function of one array (sum, identity, a lambda).
//
// A term whose weight y (or 1 - y) is 0 is 0, and so is its gradient, also where the logarithm is -Inf: logits may be
// masked with -Inf. A loss of +Inf has finite gradients where the definition has.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

/// How losses become one result: the mean, unless a function of one array is given (sum, identity, a lambda).
class Aggregation {
 public:
  Aggregation() = default;
  Aggregation(Array (*function)(const Array& losses)) : function_(function) {}
  template <class F>
    requires(!std::same_as<F, Aggregation> && std::is_invocable_r_v<Array, const F&, const Array&>)
  Aggregation(F callable) : function_(std::move(callable)) {}

  bool is_mean() const noexcept { return function_.is_empty(); }
  /// Not for the mean.
  Array operator()(const Array& losses) const { return function_(losses); }

 private:
  SmallFunction<Array(const Array& losses)> function_;
};

/// `eps` keeps logarithms finite; negative means the machine epsilon of yhat's type. `dims` is the dim of the classes.
struct LossOptions {
  int dims = 0;
  Aggregation agg = {};
  double eps = -1;
};

/// agg(|yhat - y|^2). This, mae and huber_loss take complex arrays too, the others refuse them: Error (dtype).
ROSIN_API Array mse(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(|yhat - y|).
ROSIN_API Array mae(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg((log(yhat + eps) - log(y + eps))^2).
ROSIN_API Array msle(const Array& yhat, const Array& y, const LossOptions& options = {});

struct HuberOptions {
  Aggregation agg = {};
  double delta = 1;
};
/// d^2/2 where d = |yhat - y| is below delta, else delta * (d - delta/2).
ROSIN_API Array huber_loss(const Array& yhat, const Array& y, const HuberOptions& options = {});

/// agg(-sum(y * log(yhat + eps), dims)); yhat are probabilities, y is one-hot or probabilities: (classes, batch...).
ROSIN_API Array crossentropy(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(-sum(y * logsoftmax(yhat, dims), dims)): as crossentropy(softmax(yhat), y), without overflow.
ROSIN_API Array logitcrossentropy(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(-y * log(yhat + eps) - (1 - y) * log(1 - yhat + eps)).
ROSIN_API Array binarycrossentropy(const Array& yhat, const Array& y, const LossOptions& options = {});
struct LogitBinaryOptions {
  Aggregation agg = {};
  Array pos_weight = {};  // what each y of 1 counts; broadcasts against yhat; nothing: 1
};
/// agg((1 - y) * yhat - logsigmoid(yhat)): as binarycrossentropy(sigmoid(yhat), y), without overflow; also of infinite
/// yhat. With pos_weight: agg(-pos_weight * y * logsigmoid(yhat) - (1 - y) * logsigmoid(-yhat)), as PyTorch's
/// BCEWithLogitsLoss.
ROSIN_API Array logitbinarycrossentropy(const Array& yhat, const Array& y, const LogitBinaryOptions& options = {});
/// agg(sum(y * log(y), dims)) + crossentropy(yhat, y).
ROSIN_API Array kldivergence(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(yhat - y * log(yhat)).
ROSIN_API Array poisson_loss(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(max(0, 1 - yhat * y)); y is -1 or 1.
ROSIN_API Array hinge_loss(const Array& yhat, const Array& y, const LossOptions& options = {});
/// agg(max(0, 1 - yhat * y)^2).
ROSIN_API Array squared_hinge_loss(const Array& yhat, const Array& y, const LossOptions& options = {});

struct DiceOptions {
  double smooth = 1;
};
/// 1 - (2 sum(y * yhat) + smooth) / (sum(y^2) + sum(yhat^2) + smooth).
ROSIN_API Array dice_coeff_loss(const Array& yhat, const Array& y, const DiceOptions& options = {});

struct TverskyOptions {
  double beta = 0.7;
};
/// 1 - (tp + 1) / (tp + beta * fp + (1 - beta) * fn + 1) of true positives, false positives, false negatives.
ROSIN_API Array tversky_loss(const Array& yhat, const Array& y, const TverskyOptions& options = {});

struct FocalOptions {
  int dims = 0;
  Aggregation agg = {};
  double gamma = 2;
  double eps = -1;
};
/// agg(-(1 - p)^gamma * log(p)), p = y * yhat + (1 - y) * (1 - yhat) + eps. Source: Lin et al. (2017). (Flux subtracts
/// eps where y is 0, so that a yhat of 1 has no logarithm there.) Where gamma is no whole number, 1 - p is at least
/// eps.
ROSIN_API Array binary_focal_loss(const Array& yhat, const Array& y, const FocalOptions& options = {});
/// agg(sum(-y * (1 - yhat - eps)^gamma * log(yhat + eps), dims)); as above where gamma is no whole number.
ROSIN_API Array focal_loss(const Array& yhat, const Array& y, const FocalOptions& options = {});

struct SiameseOptions {
  Aggregation agg = {};
  double margin = 1;
};
/// agg((1 - y) * yhat^2 + y * max(0, margin - yhat)^2). Error (argument): a negative margin.
ROSIN_API Array siamese_contrastive_loss(const Array& yhat, const Array& y, const SiameseOptions& options = {});

struct GaussianOptions {
  Aggregation agg = {};
  bool full = false;  // with the constant log(2 pi) / 2
  double eps = 1e-6;  // the least variance
};
/// agg(log(v) / 2 + (yhat - y)^2 / (2 v)), v = max(variance, eps): the negative log-likelihood of y under a normal
/// distribution of mean yhat. Source: Nix, Weigend (1994); torch.nn.GaussianNLLLoss.
ROSIN_API Array gaussian_nll_loss(const Array& yhat, const Array& y, const Array& variance,
                                  const GaussianOptions& options = {});

struct RankingOptions {
  Aggregation agg = {};
  double margin = 0;
};
/// agg(max(0, -y * (a - b) + margin)); y is 1 where a should be the larger score, else -1. Source:
/// torch.nn.MarginRankingLoss.
ROSIN_API Array margin_ranking_loss(const Array& a, const Array& b, const Array& y, const RankingOptions& options = {});

/// `dims` is the dim of the features.
struct CosineOptions {
  int dims = 0;
  Aggregation agg = {};
  double margin = 0;
};
/// agg of 1 - c where y is 1 and max(0, c - margin) where it is -1, c the cosine of the angle between a and b. y has
/// one element for each pair: the sizes of a, with 1 at dim `dims` or without that dim. Source:
/// torch.nn.CosineEmbeddingLoss (the squared norms are 1e-12 larger).
ROSIN_API Array cosine_embedding_loss(const Array& a, const Array& b, const Array& y,
                                      const CosineOptions& options = {});

/// `dims` is the dim of the features.
struct TripletOptions {
  int dims = 0;
  Aggregation agg = {};
  double margin = 1;
  double p = 2;       // order of the norm
  double eps = 1e-6;  // is added to the differences
  bool swap = false;  // the negative counts by what it is nearer to: the anchor or the positive
};
/// agg(max(0, |anchor - positive| - |anchor - negative| + margin)). Source: Balntas et al. (2016);
/// torch.nn.TripletMarginLoss. Error (argument): a margin or an order that is not positive.
ROSIN_API Array triplet_margin_loss(const Array& anchor, const Array& positive, const Array& negative,
                                    const TripletOptions& options = {});

/// y * (1 - alpha) + alpha / classes, of one-hot y with its classes along `dim`. Error (argument): alpha not in (0, 1).
ROSIN_API Array label_smoothing(const Array& y, double alpha, int dim = 0);
/// The same for labels 0 and 1 without a dim of classes: y * (1 - alpha) + alpha / 2.
ROSIN_API Array binary_label_smoothing(const Array& y, double alpha);

}  // namespace rosin
