// One-hot arrays that stay indices, and sets of labels with names. Read first: onehot.hpp (dense ones), index.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/embedding.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/movement.hpp>

namespace rosin {

/// (classes, shape...) with true at the label, kept as labels (shape...): an integer for each column in the place of
/// `classes` elements. A model like any other: moved, saved, and data for a loader, whose last dim counts observations.
/// Where an array is expected it becomes one. Source: OneHotArrays.OneHotArray.
struct OneHotArray {
  Array indices;  // integers in [0, classes)
  int64_t classes = 0;
  static constexpr int rosin_fields = 2;

  OneHotArray() = default;
  OneHotArray(Array labels, int64_t class_count) : indices(std::move(labels)), classes(class_count) {}

  /// Bool (classes, shape...). Error (argument): a label that is no class.
  Array dense() const { return onehot(indices, classes); }
  operator Array() const { return dense(); }
};

/// The labels.
inline Array onecold(const OneHotArray& x) { return x.indices; }
/// w (m, classes) times one-hot columns: the columns of w at the labels, (m, shape...), without a product. Error
/// (shape): w has other columns.
inline Array matmul(const Array& w, const OneHotArray& x) {
  if (w.rank() == 2 && w.size(1) == x.classes) return gather(w, x.indices, 1);
  throw Error(ErrorKind::shape, "matmul: a matrix has a column for each class; got " + to_string(w.shape()) + " for " +
                                    std::to_string(x.classes) + " classes; transpose it");
}
/// An embedding reads the labels.
inline Array embed(const Embedding& layer, const OneHotArray& x) { return layer(x.indices); }
/// As of dense targets, from the labels.
inline Array logitcrossentropy(const Array& yhat, const OneHotArray& y, const LabelOptions& options = {}) {
  return labelcrossentropy(yhat, y.indices, options);
}

/// Names of classes, numbered from 0 in their order: what a network's classes are called.
template <class Label = std::string> class LabelSet {
 public:
  /// Error (argument): a label stands there twice.
  explicit LabelSet(std::vector<Label> labels, std::optional<Label> unknown = {}) : labels_(std::move(labels)) {
    std::vector<Label> sorted = labels_;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      throw Error(ErrorKind::argument, "LabelSet: every label stands once; got one twice; remove it");
    }
    if (unknown) unknown_ = find(*unknown);
  }
  LabelSet(std::initializer_list<Label> labels) : LabelSet(std::vector<Label>(labels)) {}
  /// Those that occur, in ascending order.
  static LabelSet of(std::span<const Label> values) {
    std::vector<Label> labels(values.begin(), values.end());
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    return LabelSet(std::move(labels));
  }

  int64_t size() const noexcept { return static_cast<int64_t>(labels_.size()); }
  const std::vector<Label>& labels() const noexcept { return labels_; }
  /// Of a class. Error (argument): there is none.
  const Label& operator[](int64_t at) const {
    if (at >= 0 && at < size()) return labels_[static_cast<size_t>(at)];
    throw Error(ErrorKind::argument, "LabelSet: a class lies in [0, " + std::to_string(size()) + "); got " +
                                         std::to_string(at) + "; classes count from 0");
  }
  /// The class of a label: that of `unknown` where the label is none. Error (argument): neither.
  int64_t number(const Label& label) const { return find(label); }
  /// One-hot columns (classes, values).
  OneHotArray encode(std::span<const Label> values) const {
    std::vector<int32_t> numbers;
    for (const Label& value : values) numbers.push_back(static_cast<int32_t>(find(value)));
    const auto count = static_cast<int64_t>(numbers.size());
    return {Array::borrow(std::move(numbers), {count}), size()};
  }
  OneHotArray encode(const std::vector<Label>& values) const { return encode(std::span<const Label>(values)); }
  /// The label of each class number, or of the largest element of each column of floats or Bool (classes, n).
  std::vector<Label> decode(const Array& classes) const {
    std::vector<Label> found;
    const bool is_numbers = is_integer(classes.dtype());
    for (const int64_t at : (is_numbers ? classes : onecold(classes)).template to_vector<int64_t>()) {
      found.push_back((*this)[at]);
    }
    return found;
  }

 private:
  int64_t find(const Label& label) const {
    const auto at = std::find(labels_.begin(), labels_.end(), label);
    if (at != labels_.end()) return at - labels_.begin();
    if (unknown_) return *unknown_;
    throw Error(ErrorKind::argument, "LabelSet: the label is none of the " + std::to_string(size()) +
                                         "; state one for unknown labels, or add it");
  }

  std::vector<Label> labels_;
  std::optional<int64_t> unknown_;
};

}  // namespace rosin
