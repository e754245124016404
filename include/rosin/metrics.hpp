// Metrics: what a model's results are worth, added up batch by batch where the results are; value() reads the number.
// They are plain structs whose arrays are sums: they are copied, saved and moved as models are, and ranks may add them
// up. Results yhat are (classes, batch...), labels numbers of classes (batch...), or one-hot as yhat is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <rosin/array.hpp>

/// All add(): Error (shape) where the sizes do not fit, (dtype) for labels that are no integers, (argument) for a label
/// that is no class. What refuses a batch leaves the metric as it was. value() is NaN before the first observation.
namespace rosin::metrics {

/// The mean of all elements, such as the losses of observations ({.agg = identity}).
struct Mean {
  Array total = {};  // Float64
  int64_t count = 0;

  ROSIN_API void add(const Array& values);
  ROSIN_API double value() const;
  void reset() { *this = {}; }
};

/// The share of observations whose label is among the `top` highest results; of equal ones the first class is higher.
struct Accuracy {
  int64_t top = 1;
  Array hits = {};  // Int64
  int64_t count = 0;

  ROSIN_API void add(const Array& yhat, const Array& labels);
  ROSIN_API double value() const;
  void reset() { *this = {.top = top}; }
};

/// What the model takes one class for. A share of nothing is 0, as in scikit-learn.
struct ClassScore {
  double precision;  // of the observations taken for it, the share that is it
  double recall;     // of those that are it, the share taken for it
  double f1;         // their harmonic mean
  int64_t support;   // how many are it
};

/// How the scores of classes become one: `macro` is their mean, `weighted` that by support, `micro` counts observations
/// of all classes alike.
enum class Average : uint8_t { macro, weighted, micro };

/// How many observations of each class were taken for each class.
struct ConfusionMatrix {
  int64_t classes = 2;
  Array counts = {};  // Int64 (classes, classes): counts(actual, predicted)

  ROSIN_API void add(const Array& yhat, const Array& labels);
  /// The same for predicted classes (batch...).
  ROSIN_API void add_predicted(const Array& predicted, const Array& labels);
  ROSIN_API double accuracy() const;
  ROSIN_API std::vector<ClassScore> by_class() const;
  ROSIN_API double precision(Average average = Average::macro) const;
  ROSIN_API double recall(Average average = Average::macro) const;
  ROSIN_API double f1(Average average = Average::macro) const;
  void reset() { counts = {}; }
};

/// The area under the receiver's operating curve: how likely an observation of label 1 has a higher score than one of
/// label 0; equal scores count half. It keeps all scores. NaN where a label is missing or a score is NaN.
struct RocAuc {
  std::vector<Array> scores = {}, labels = {};

  /// Scores and labels 0 and 1 (Bool or integers) of the same shape.
  ROSIN_API void add(const Array& scores, const Array& labels);
  ROSIN_API double value() const;
  void reset() { *this = {}; }
};

/// exp of the mean cross-entropy of labels under logits yhat, without the labels `ignore`.
struct Perplexity {
  std::optional<int64_t> ignore = {};
  Array total = {};  // Float64
  Array count = {};  // Int64

  ROSIN_API void add(const Array& yhat, const Array& labels);
  ROSIN_API double value() const;
  void reset() { *this = {.ignore = ignore}; }
};

/// The coefficient of determination of all elements: 1 - sum((y - yhat)^2) / sum((y - mean(y))^2).
struct R2 {
  Array residual = {}, total = {}, squares = {};  // Float64: sums of (y - yhat)^2, y, y^2
  int64_t count = 0;

  ROSIN_API void add(const Array& yhat, const Array& y);
  ROSIN_API double value() const;
  void reset() { *this = {}; }
};

}  // namespace rosin::metrics
