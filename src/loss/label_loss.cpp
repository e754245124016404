// Losses of labels: see rosin/label_loss.hpp. Whether a class is the label is found in the kernel that needs it.
#include <rosin/label_loss.hpp>

#include <string>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/node.hpp"
#include "graph/refuse_type.hpp"
#include "loss/labels.hpp"
#include "loss/loss_parts.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/lookup.hpp"
#include "ops/loss_terms.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// The dim of the classes, counted from 0.
int dim_of_classes(const char* loss, const Array& scores, int dim) {
  if (scores.is_nothing()) refuse(ErrorKind::argument, loss, "yhat must be an array", "nothing", "pass logits");
  require_real(loss, scores);
  const int at = dim < 0 ? dim + scores.rank() : dim;
  if (at >= 0 && at < scores.rank()) return at;
  refuse(ErrorKind::shape, loss, "yhat must have the dim of the classes, " + std::to_string(dim),
         to_string(scores.shape()), "yhat is (classes, batch...) unless `dims` says something else");
}

void check_labels(const char* loss, const Array& scores, const Array& labels, int dim) {
  if (labels.is_nothing())
    refuse(ErrorKind::argument, loss, "labels must be an array", "nothing", "pass class numbers");
  if (!is_integer(labels.dtype())) {
    refuse(ErrorKind::dtype, loss, "labels must be integers", to_string(labels.dtype()),
           "they are numbers of classes; logitcrossentropy takes one-hot arrays and probabilities");
  }
  const Shape wanted = with_dims(scores.shape(), dim, 1, std::initializer_list<int64_t>{});
  if (labels.shape() == wanted) return;
  refuse(ErrorKind::shape, loss, "labels must have the shape " + to_string(wanted) + ", that of yhat without classes",
         to_string(labels.shape()), "reshape them");
}

/// What weights of classes stand beside.
struct ClassDim {
  int64_t classes;
  int rank, dim;
  DType type;
};

/// Weights (classes) along their dim, in the type of the scores.
Array weights_along(const char* loss, const Array& weights, const ClassDim& scores) {
  if (weights.rank() != 1 || weights.size(0) != scores.classes) {
    refuse(ErrorKind::shape, loss,
           "weights must be one number for each of " + std::to_string(scores.classes) + " classes",
           to_string(weights.shape()), "reshape them");
  }
  std::vector<int64_t> sizes(static_cast<size_t>(scores.rank), 1);
  sizes[static_cast<size_t>(scores.dim)] = scores.classes;
  return reshape(weights.dtype() == scores.type ? weights : cast(weights, scores.type), sizes);
}

}  // namespace

Labels::Labels(const char* loss, const Array& scores, const Array& labels, int dim, std::optional<int64_t> ignore)
    : loss_(loss), rank_(scores.is_nothing() ? 0 : scores.rank()), dim_(dim_of_classes(loss, scores, dim)),
      classes_(scores.size(dim_)), type_(is_float(scores.dtype()) ? scores.dtype() : Float32) {
  check_labels(loss, scores, labels, dim_);
  const DeviceScope scope(*scores.node());
  const DType type = size_of(labels.dtype()) < 4 ? Int32 : Int64;
  const Array numbers = labels.dtype() == Int32 ? labels : cast(labels, type);
  const Array known = ignore ? where(eq(numbers, *ignore), 0, numbers) : numbers;
  const Array valid = squeeze(are_labels(known, classes_), 0);
  places_ = unsqueeze(known, dim_);
  counted_ = unsqueeze(ignore ? logical_and(valid, ne(numbers, *ignore)) : valid, dim_);
}

Array Labels::is_label() const { return is_at(where(counted_, places_, -1)); }

Array Labels::is_at(const Array& places) const {
  const DeviceScope scope(*places_.node());
  std::vector<int64_t> sizes(static_cast<size_t>(rank_), 1);
  sizes[static_cast<size_t>(dim_)] = classes_;
  return eq(reshape(arange(classes_), sizes), places);
}

Array Labels::along(const Array& weights) const {
  return weights_along(loss_, weights, {classes_, rank_, dim_, type_});
}

Array Labels::without_classes(const Array& losses) const { return squeeze(losses, dim_); }

namespace {

/// What the classes of each observation weigh, and what it counts as a whole.
struct Target {
  Array classes;  // in the shape of the scores
  Array whole;    // 1 in place of the classes; nothing: 1
};

Target target_of(const Labels& labels, DType type, const LabelOptions& options) {
  const bool weighted = !options.weights.is_nothing();
  Target target{labels.is_label(), {}};
  if (weighted || options.ignore) target.whole = cast(labels.counted(), type);
  if (options.smoothing != 0) {
    const double share = options.smoothing / static_cast<double>(labels.classes());
    const Array smooth = cast(target.classes, type) * (1 - options.smoothing) + share;
    target.classes = where(labels.counted(), smooth, 0);
  }
  if (!weighted) return target;
  const Array weights = labels.along(options.weights);
  target.whole = where(labels.counted(), gather(reshape(weights, {-1}), labels.places(), 0), 0);
  target.classes = target.classes * weights;
  return target;
}

Array weighted_mean(const Labels& labels, const Array& losses, const Array& whole, const Aggregation& agg) {
  if (!agg.is_mean()) return agg(labels.without_classes(losses));
  return whole.is_nothing() ? mean(losses) : sum(losses) / sum(whole);
}

/// Of probabilities in the shape of the logits.
Array of_probabilities(const Array& yhat, const Array& y, const LabelOptions& options) {
  constexpr const char* name = "labelcrossentropy";
  if (options.ignore) {
    refuse(ErrorKind::argument, name, "probabilities are of no class that could be ignored",
           "ignore = " + std::to_string(*options.ignore), "leave `ignore` out");
  }
  const int dim = dim_of_classes(name, yhat, options.dims);
  if (y.shape() != yhat.shape()) {
    refuse(ErrorKind::shape, name, "probabilities must have the shape of yhat, " + to_string(yhat.shape()),
           to_string(y.shape()), "labels without the dim of the classes are integers");
  }
  const auto classes = static_cast<double>(yhat.size(dim));
  Array target = y.dtype() == yhat.dtype() ? y : cast(y, yhat.dtype());
  if (options.smoothing != 0) target = target * (1 - options.smoothing) + options.smoothing / classes;
  if (!options.weights.is_nothing())
    target = target * weights_along(name, options.weights, {yhat.size(dim), yhat.rank(), dim, yhat.dtype()});
  const Array losses = squeeze(-sum(masked_product(target, logsoftmax_in_loss(yhat, dim)), dim), dim);
  return aggregated(losses, options.agg);
}

/// Of more classes than kernels keep of a row: to find the label's score by walking all would take a pass over them.
constexpr int64_t most_walked = 16384;

/// -w(label) * logsoftmax(yhat)(label), that is one element of each line.
Array losses_at_labels(const Array& yhat, const Labels& labels, const Array& whole) {
  const Array places = where(labels.counted(), labels.places(), 0);
  const Array scores = logsoftmax_at(yhat, places, labels.is_at(places), labels.dim());
  return whole.is_nothing() ? -scores : -masked_product(whole, scores);
}

}  // namespace

Array labelcrossentropy(const Array& given, const Array& labels, const LabelOptions& options) {
  const Array yhat = widened(given);
  constexpr const char* name = "labelcrossentropy";
  if (!(options.smoothing >= 0 && options.smoothing <= 1)) {
    refuse(ErrorKind::argument, name, "smoothing must be in [0, 1]", std::to_string(options.smoothing), "use 0.1");
  }
  if (!labels.is_nothing() && is_float(labels.dtype())) return of_probabilities(yhat, labels, options);
  const Labels places(name, yhat, labels, options.dims, options.ignore);
  if (options.smoothing == 0 && places.classes() > most_walked && is_float(yhat.dtype())) {
    const Array whole = target_of(places, yhat.dtype(), options).whole;
    return weighted_mean(places, losses_at_labels(given, places, whole), whole, options.agg);
  }
  const Array scores = logsoftmax_in_loss(yhat, places.dim());
  const Target target = target_of(places, scores.dtype(), options);
  const Array losses = -sum(masked_product(target.classes, scores), places.dim());
  return weighted_mean(places, losses, target.whole, options.agg);
}

Array multi_margin_loss(const Array& given, const Array& labels, const MultiMarginOptions& options) {
  const Array yhat = widened(given);
  constexpr const char* name = "multi_margin_loss";
  if (options.p != 1 && options.p != 2) {
    refuse(ErrorKind::argument, name, "the order p must be 1 or 2", std::to_string(options.p), "the default is 1");
  }
  const Labels places(name, yhat, labels, options.dims);
  const Array is_label = places.is_label();
  const Array of_label = sum(where(is_label, yhat, 0), places.dim());
  const Array short_by = max(0, options.margin - of_label + yhat);
  const Array terms = where(is_label, 0, options.p == 2 ? square(short_by) : short_by);
  Array losses = sum(terms, places.dim()) / static_cast<double>(places.classes());
  if (!options.weights.is_nothing()) {
    losses = losses * gather(reshape(places.along(options.weights), {-1}), places.places(), 0);
  }
  return aggregated(places.without_classes(losses), options.agg);
}

}  // namespace rosin
