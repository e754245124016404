// Metrics: see rosin/metrics.hpp. A batch is added by one run on the device of the results.
#include <rosin/metrics.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/search.hpp>

#include "graph/context.hpp"
#include "graph/node.hpp"
#include "ops/lookup.hpp"
#include "ops/shapes.hpp"

namespace rosin::metrics {
namespace {

constexpr double nothing_yet = std::numeric_limits<double>::quiet_NaN();

double quotient(double part, double whole) { return whole == 0 ? nothing_yet : part / whole; }

/// `sum` with `more`, evaluated: nothing changes where that fails.
Array added(const Array& sum, const Array& more) {
  Array both = sum.is_nothing() ? more : sum + more;
  eval(both);
  return both;
}

Array exact_sum(const Array& x) { return sum(cast(x, Float64)); }

Shape without_classes(const Array& yhat) { return with_dims(yhat.shape(), 0, 1, std::initializer_list<int64_t>{}); }

void check_given(const char* metric, const Array& a, const Array& b) {
  if (!a.is_nothing() && !b.is_nothing()) return;
  refuse(ErrorKind::argument, metric, "it compares two arrays", "nothing", "pass results and labels");
}

/// Labels as numbers of classes: one-hot ones have the shape of yhat.
Array class_numbers(const char* metric, const Array& yhat, const Array& labels) {
  check_given(metric, yhat, labels);
  if (yhat.rank() > 0 && labels.shape() == yhat.shape()) return onecold(labels);
  if (!is_integer(labels.dtype())) {
    refuse(ErrorKind::dtype, metric, "labels must be integers, or one-hot in the shape of yhat",
           to_string(labels.dtype()), "they are numbers of classes");
  }
  if (yhat.rank() > 0 && labels.shape() == without_classes(yhat)) return labels;
  refuse(ErrorKind::shape, metric, "labels are (batch...) beside yhat (classes, batch...)",
         to_string(labels.shape()) + " and " + to_string(yhat.shape()), "reshape them");
}

void check_same_shape(const char* metric, const Array& a, const Array& b) {
  check_given(metric, a, b);
  if (a.shape() == b.shape()) return;
  refuse(ErrorKind::shape, metric, "both must have the same shape",
         to_string(a.shape()) + " and " + to_string(b.shape()), "reshape one");
}

/// Labels, once the run has found that they are classes.
Array checked(const Array& labels, int64_t classes) {
  return where(squeeze(are_labels(labels, classes), 0), labels, 0);
}

}  // namespace

void Mean::add(const Array& values) {
  if (values.is_nothing()) refuse(ErrorKind::argument, "Mean", "it adds an array", "nothing", "pass values");
  total = added(total, exact_sum(values));
  count += values.count();
}

double Mean::value() const { return count == 0 ? nothing_yet : total.item() / static_cast<double>(count); }

void Accuracy::add(const Array& yhat, const Array& labels) {
  const Array numbers = class_numbers("Accuracy", yhat, labels);
  const DeviceScope scope(*yhat.node());
  const int64_t classes = yhat.size(0);
  std::vector<int64_t> along(static_cast<size_t>(yhat.rank()), 1);
  along[0] = classes;
  const Array label = unsqueeze(checked(numbers, classes), 0), all = reshape(arange(classes), along);
  const Array score = take_along(yhat, label, 0);
  const Array higher = logical_or(logical_not(le(yhat, score)), logical_and(eq(yhat, score), lt(all, label)));
  const Array ahead = sum(cast(logical_and(higher, ne(all, label)), Int32), 0);
  hits = added(hits, sum(lt(ahead, top)));
  count += numbers.count();
}

double Accuracy::value() const { return count == 0 ? nothing_yet : hits.item() / static_cast<double>(count); }

void ConfusionMatrix::add(const Array& yhat, const Array& labels) {
  const Array numbers = class_numbers("ConfusionMatrix", yhat, labels);
  if (yhat.size(0) != classes) {
    refuse(ErrorKind::shape, "ConfusionMatrix", "yhat must have " + std::to_string(classes) + " classes",
           to_string(yhat.shape()), "its field `classes` says how many");
  }
  add_predicted(onecold(yhat), numbers);
}

void ConfusionMatrix::add_predicted(const Array& predicted, const Array& labels) {
  check_same_shape("ConfusionMatrix", predicted, labels);
  const DeviceScope scope(*predicted.node());
  const Array actual = cast(checked(labels, classes), Int64), taken = cast(checked(predicted, classes), Int64);
  counts = added(counts, reshape(bincount(actual + taken * classes, classes * classes), {classes, classes}));
}

namespace {

/// Counts of one class, or of several added up.
struct Counts {
  double right = 0, taken = 0, actual = 0;

  static double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }
  double precision() const { return share(right, taken); }
  double recall() const { return share(right, actual); }
  double f1() const { return share(2 * right, taken + actual); }
};

std::vector<Counts> counts_of(const ConfusionMatrix& matrix) {
  std::vector<Counts> counts(static_cast<size_t>(matrix.classes));
  if (matrix.counts.is_nothing()) return counts;
  const std::vector<int64_t> numbers = matrix.counts.to_vector<int64_t>();
  for (size_t predicted = 0; predicted < counts.size(); ++predicted) {
    for (size_t actual = 0; actual < counts.size(); ++actual) {
      const auto n = static_cast<double>(numbers[actual + predicted * counts.size()]);
      counts[predicted].taken += n;
      counts[actual].actual += n;
      if (actual == predicted) counts[actual].right += n;
    }
  }
  return counts;
}

Counts together(const std::vector<Counts>& classes) {
  Counts all;
  for (const Counts& c : classes) {
    all = {all.right + c.right, all.taken + c.taken, all.actual + c.actual};
  }
  return all;
}

template <class Score> double averaged(const ConfusionMatrix& matrix, Average average, const Score& score) {
  const std::vector<Counts> classes = counts_of(matrix);
  const Counts all = together(classes);
  if (all.actual == 0) return nothing_yet;
  if (average == Average::micro) return score(all);
  double total = 0;
  for (const Counts& c : classes) total += score(c) * (average == Average::macro ? 1 : c.actual);
  return total / (average == Average::macro ? static_cast<double>(classes.size()) : all.actual);
}

}  // namespace

double ConfusionMatrix::accuracy() const {
  const Counts all = together(counts_of(*this));
  return quotient(all.right, all.actual);
}

std::vector<ClassScore> ConfusionMatrix::by_class() const {
  std::vector<ClassScore> scores;
  for (const Counts& c : counts_of(*this)) {
    scores.push_back({c.precision(), c.recall(), c.f1(), static_cast<int64_t>(c.actual)});
  }
  return scores;
}

double ConfusionMatrix::precision(Average average) const {
  return averaged(*this, average, [](const Counts& c) { return c.precision(); });
}
double ConfusionMatrix::recall(Average average) const {
  return averaged(*this, average, [](const Counts& c) { return c.recall(); });
}
double ConfusionMatrix::f1(Average average) const {
  return averaged(*this, average, [](const Counts& c) { return c.f1(); });
}

void RocAuc::add(const Array& more_scores, const Array& more_labels) {
  check_same_shape("RocAuc", more_scores, more_labels);
  if (!is_integer(more_labels.dtype()) && more_labels.dtype() != Bool) {
    refuse(ErrorKind::dtype, "RocAuc", "labels must be Bool, or integers 0 and 1", to_string(more_labels.dtype()),
           "compare them with a threshold");
  }
  const Array kept_scores = reshape(more_scores, {-1}), numbers = cast(reshape(more_labels, {-1}), Int32);
  const Array kept_labels = checked(numbers, 2);
  eval(kept_scores);
  eval(kept_labels);
  scores.push_back(kept_scores);
  labels.push_back(kept_labels);
}

double RocAuc::value() const {
  std::vector<std::pair<double, bool>> all;
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::vector<double> values = scores[i].to_vector<double>();
    const std::vector<int64_t> marks = labels[i].to_vector<int64_t>();
    for (size_t k = 0; k < values.size(); ++k) {
      if (std::isnan(values[k])) return nothing_yet;
      all.emplace_back(values[k], marks[k] == 1);
    }
  }
  std::sort(all.begin(), all.end());
  double below = 0, pairs = 0, ones = 0;  // zeros with a lower score; pairs in the right order; ones so far
  for (size_t i = 0; i < all.size();) {
    double equal[2] = {0, 0};
    for (const double score = all[i].first; i < all.size() && all[i].first == score; ++i) ++equal[all[i].second];
    pairs += equal[1] * (below + equal[0] / 2);
    below += equal[0];
    ones += equal[1];
  }
  return quotient(pairs, ones * below);
}

void Perplexity::add(const Array& yhat, const Array& labels) {
  const Array numbers = class_numbers("Perplexity", yhat, labels);
  const auto whole = [](const Array& losses) { return exact_sum(losses); };
  const Array losses = added(total, labelcrossentropy(yhat, numbers, {.agg = whole, .ignore = ignore}));
  const Array counted = ignore ? sum(ne(numbers, *ignore)) : full(Shape{}, numbers.count(), Int64);
  count = added(count, counted);
  total = losses;
}

double Perplexity::value() const {
  return count.is_nothing() ? nothing_yet : std::exp(quotient(total.item(), count.item()));
}

void R2::add(const Array& yhat, const Array& y) {
  check_same_shape("R2", yhat, y);
  const Array exact = cast(y, Float64);
  const Array more_residual = added(residual, sum(square(exact - cast(yhat, Float64))));
  const Array more_squares = added(squares, sum(square(exact)));
  total = added(total, sum(exact));
  residual = more_residual;
  squares = more_squares;
  count += y.count();
}

double R2::value() const {
  if (count == 0) return nothing_yet;
  const double mean = total.item() / static_cast<double>(count);
  return 1 - quotient(residual.item(), squares.item() - mean * total.item());
}

}  // namespace rosin::metrics
