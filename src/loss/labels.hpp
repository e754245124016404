// Labels beside the scores of their classes, as arrays that broadcast against each other.
#pragma once

#include <optional>

#include <rosin/array.hpp>

namespace rosin {

class Labels {
 public:
  /// Labels (batch...) of scores (classes, batch...) with the classes along `dim`. `loss` is who asks, for messages.
  /// Throws Error (shape, dtype); a label that is no class is found when the run reads it.
  Labels(const char* loss, const Array& scores, const Array& labels, int dim, std::optional<int64_t> ignore = {});

  int dim() const noexcept { return dim_; }
  int64_t classes() const noexcept { return classes_; }
  /// The labels with a dim of size 1 for the classes, some class where they do not count.
  const Array& places() const noexcept { return places_; }
  /// Bool, in the shape of places(): what is counted.
  const Array& counted() const noexcept { return counted_; }
  /// Bool, in the shape of the scores: whether this class is the label, of those counted.
  Array is_label() const;
  /// Bool, in the shape of the scores: whether this class is that of `places`, (1) in place of the classes.
  Array is_at(const Array& places) const;
  /// Weights (classes) along their dim, in the type of the scores. Throws Error (shape).
  Array along(const Array& weights) const;
  /// Losses with a dim of size 1 for the classes in the shape of the labels.
  Array without_classes(const Array& losses) const;

 private:
  const char* loss_;
  int rank_, dim_;
  int64_t classes_;
  DType type_;
  Array places_, counted_;
};

}  // namespace rosin
