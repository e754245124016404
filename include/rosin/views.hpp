// More views of observations: folds, windows, batches, groups and samples; nothing is read before it is asked for.
// Source: MLUtils.jl. Read first: data.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/data.hpp>
#include <rosin/export.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

namespace detail {

/// Where the folds of n observations begin, and n. Error (argument): fewer than 2 folds, or more than observations.
ROSIN_API std::vector<int64_t> fold_starts(int64_t n, int64_t folds);
/// 0 ... n - 1 without those from begin to end - 1.
ROSIN_API std::vector<int64_t> order_without(int64_t n, int64_t begin, int64_t end);
/// begin, begin + 1, ..., end - 1.
ROSIN_API std::vector<int64_t> order_from(int64_t begin, int64_t end);
/// How many windows there are. Error (argument): size or stride below 1.
ROSIN_API int64_t window_count(int64_t n, int64_t size, int64_t stride);
/// How many batches. Error (argument): size below 1.
ROSIN_API int64_t batch_count(int64_t n, int64_t size, bool partial);
/// Error (argument) unless 0 <= i < n.
ROSIN_API void check_observation(int64_t i, int64_t n);
ROSIN_API std::vector<int64_t> random_places(int64_t n, int64_t count, Rng& rng);
ROSIN_API std::vector<int64_t> weighted_places(int64_t n, int64_t count, std::span<const double> weights, Rng& rng);
ROSIN_API std::vector<int64_t> oversampled(const Array& labels, double fraction, Rng* rng, int64_t n);
ROSIN_API std::vector<int64_t> undersampled(const Array& labels, Rng* rng, int64_t n);
/// The places of each part, of every class in these shares.
ROSIN_API std::vector<std::vector<int64_t>> stratified_parts(const Array& labels, std::span<const double> shares,
                                                             int64_t n);
/// Drops the last dim, of size 1, of all arrays.
ROSIN_API void drop_observation_dims(ModelEdit observation);

}  // namespace detail

/// Observation i by itself: of arrays (..., n) the arrays (...). Error (argument): there is none.
template <Observations Data> auto oneobs(const Data& data, int64_t i) {
  detail::check_observation(i, numobs(data));
  if constexpr (SingleData<Data>) {
    return data.getobs(i);
  } else {
    auto one = getobs(data, std::span<const int64_t>(&i, 1));
    detail::drop_observation_dims(one);
    return one;
  }
}

/// k pairs (train, valid) of views: each observation is in one of the valid parts, which have equal sizes or one more.
/// Shuffle first where the order means something. Error (argument): k is not in 2 ... numobs.
template <Observations Data> auto kfolds(const Data& data, int64_t k = 5) {
  const int64_t n = numobs(data);
  const std::vector<int64_t> starts = detail::fold_starts(n, k);
  using View = decltype(obsview(data, std::vector<int64_t>()));
  std::vector<std::pair<View, View>> folds;
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    folds.emplace_back(obsview(data, detail::order_without(n, starts[i], starts[i + 1])),
                       obsview(data, detail::order_from(starts[i], starts[i + 1])));
  }
  return folds;
}
/// Folds whose valid part has p observations (some have more where p does not divide their number).
template <Observations Data> auto leavepout(const Data& data, int64_t p = 1) {
  return kfolds(data, p > 0 ? numobs(data) / p : 0);
}

/// k pairs (train, valid) of views in the order of time: fold i learns from the first i + 1 of k + 1 equal parts, and
/// is tested on the next one. Error (argument): k is not in 1 ... numobs - 1. Source: scikit-learn's TimeSeriesSplit.
template <Observations Data> auto timeseries_kfolds(const Data& data, int64_t k = 5) {
  const std::vector<int64_t> starts = detail::fold_starts(numobs(data), k + 1);
  using View = decltype(obsview(data, std::vector<int64_t>()));
  std::vector<std::pair<View, View>> folds;
  for (size_t i = 1; i + 1 < starts.size(); ++i) {
    folds.emplace_back(obsview(data, detail::order_from(0, starts[i])),
                       obsview(data, detail::order_from(starts[i], starts[i + 1])));
  }
  return folds;
}

/// Data whose batches a function puts together from single observations: collate(std::vector<observation>) -> batch.
template <Observations Data, class Collate> struct CollatedData {
  Data data;
  Collate collate;

  int64_t numobs() const { return rosin::numobs(data); }
  auto getobs(std::span<const int64_t> at) const {
    std::vector<decltype(oneobs(data, 0))> observations;
    for (const int64_t i : at) observations.push_back(oneobs(data, i));
    return collate(observations);
  }
};
/// For sequences of differing lengths: collateobs(data, [](const auto& all) { return batch_sequence(all); }).
template <Observations Data, class Collate> CollatedData<Data, Collate> collateobs(Data data, Collate collate) {
  return {std::move(data), std::move(collate)};
}

/// Sequences one after another in columns of a stated length, as language models are fed: no place is padding but in
/// the last column.
struct PackedSequences {
  Array values;    // (..., length, columns)
  Array segments;  // (length, columns), Int32: the number of the sequence, -1 for padding
};
/// Sequences (..., time) of one type. Error (shape), Error (argument): none, a length below 1.
ROSIN_API PackedSequences pack_sequences(std::span<const Array> sequences, int64_t length, const Array& value = 0);
inline PackedSequences pack_sequences(std::initializer_list<Array> sequences, int64_t length, const Array& value = 0) {
  return pack_sequences(std::span<const Array>(sequences.begin(), sequences.size()), length, value);
}

/// Data whose observation i is the observations i * stride ... i * stride + size - 1 of other data, as one batch.
template <Observations Data> struct SlidingWindow {
  Data data;
  int64_t size, stride;

  int64_t numobs() const { return detail::window_count(rosin::numobs(data), size, stride); }
  auto getobs(int64_t i) const {
    detail::check_observation(i, numobs());
    return rosin::getobs(data, detail::order_from(i * stride, i * stride + size));
  }
};
/// Error (argument): size or stride below 1. What does not fill a window at the end is left out.
template <Observations Data> SlidingWindow<Data> slidingwindow(Data data, int64_t size, int64_t stride = 1) {
  detail::window_count(numobs(data), size, stride);
  return {std::move(data), size, stride};
}

/// Data whose observation i is the i-th batch of other data.
template <Observations Data> struct BatchView {
  Data data;
  int64_t batchsize;
  bool partial = true;  // the last batch may have fewer observations; false: it is left out

  int64_t numobs() const { return detail::batch_count(rosin::numobs(data), batchsize, partial); }
  auto getobs(int64_t i) const {
    detail::check_observation(i, numobs());
    return rosin::getobs(data, detail::order_from(i * batchsize, std::min((i + 1) * batchsize, rosin::numobs(data))));
  }
};
/// Error (argument): batchsize below 1.
template <Observations Data> BatchView<Data> batchview(Data data, int64_t batchsize, bool partial = true) {
  detail::batch_count(numobs(data), batchsize, partial);
  return {std::move(data), batchsize, partial};
}

/// Data of one kind, one after another.
template <Observations Data> struct JoinedData {
  std::vector<Data> parts;

  int64_t numobs() const {
    int64_t n = 0;
    for (const Data& part : parts) n += rosin::numobs(part);
    return n;
  }
  auto getobs(int64_t i) const {
    detail::check_observation(i, numobs());
    size_t part = 0;
    for (; i >= rosin::numobs(parts[part]); ++part) i -= rosin::numobs(parts[part]);
    return oneobs(parts[part], i);
  }
};
template <Observations Data, std::same_as<Data>... More>
JoinedData<Data> joinobs(const Data& first, const More&... more) {
  return {{first, more...}};
}

/// `for (auto x : eachobs(data))`: one observation after another, read when it is its turn. Holds the data.
template <Observations Data> class EachObs {
 public:
  explicit EachObs(Data data) : data_(std::move(data)) {}

  class Iterator {
   public:
    Iterator(const Data& data, int64_t at) : data_(&data), at_(at) {}
    auto operator*() const { return oneobs(*data_, at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const Data* data_;
    int64_t at_;
  };
  Iterator begin() const { return {data_, 0}; }
  Iterator end() const { return {data_, numobs(data_)}; }
  int64_t size() const { return numobs(data_); }

 private:
  Data data_;
};
template <Observations Data> EachObs<Data> eachobs(Data data) { return EachObs<Data>(std::move(data)); }

/// The observations of which f is true, as a view. Reads all of them.
template <class F, Observations Data> auto filterobs(F f, const Data& data) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < numobs(data); ++i) {
    if (f(oneobs(data, i))) kept.push_back(i);
  }
  return obsview(data, std::move(kept));
}

/// A view for each value of f, in the order of the values. Reads all observations.
template <class F, Observations Data> auto groupobs(F f, const Data& data) {
  using Value = std::decay_t<decltype(f(oneobs(data, 0)))>;
  std::map<Value, std::vector<int64_t>> places;
  for (int64_t i = 0; i < numobs(data); ++i) places[f(oneobs(data, i))].push_back(i);
  std::map<Value, decltype(obsview(data, std::vector<int64_t>()))> groups;
  for (auto& [key, at] : places) groups.emplace(key, obsview(data, std::move(at)));
  return groups;
}

/// Integers (n) and where each one stands; how often each one comes. Errors: shape (not one dim), dtype (no integers).
ROSIN_API std::map<int64_t, std::vector<int64_t>> group_indices(const Array& labels);
ROSIN_API std::map<int64_t, int64_t> group_counts(const Array& labels);

/// `count` observations drawn with replacement, each equally likely or by its weight, as a view. Errors (argument): no
/// observations, a negative count, weights that are not as many, negative or all 0.
template <Observations Data> auto randobs(const Data& data, int64_t count, Rng& rng = default_rng()) {
  return obsview(data, detail::random_places(numobs(data), count, rng));
}
template <Observations Data>
auto randobs(const Data& data, int64_t count, std::span<const double> weights, Rng& rng = default_rng()) {
  return obsview(data, detail::weighted_places(numobs(data), count, weights, rng));
}
/// One of them.
template <Observations Data> auto randobs(const Data& data) {
  return oneobs(data, detail::random_places(numobs(data), 1, default_rng())[0]);
}

/// A view in which each class of `labels` (n) of integers comes at least `fraction` times as often as the most frequent
/// one: observations come again. In random order unless rng is null, then those that are repeated come last. Errors:
/// shape (there are not as many labels), argument (fraction is not in (0, 1]).
template <Observations Data>
auto oversample(const Data& data, const Array& labels, double fraction = 1, Rng* rng = &default_rng()) {
  return obsview(data, detail::oversampled(labels, fraction, rng, numobs(data)));
}
/// A view with as many observations of each class as the rarest one has: drawn from each class and in random order
/// unless rng is null, then the first ones of each in their order.
template <Observations Data> auto undersample(const Data& data, const Array& labels, Rng* rng = &default_rng()) {
  return obsview(data, detail::undersampled(labels, rng, numobs(data)));
}

/// As splitobs, each class of `labels` (n) of integers in these shares: `splitobs(data, std::array{0.7, 0.2}, labels)`.
template <Observations Data, size_t n>
auto splitobs(const Data& data, const std::array<double, n>& shares, const Array& labels) {
  const std::vector<std::vector<int64_t>> parts = detail::stratified_parts(labels, shares, numobs(data));
  return [&]<size_t... i>(std::index_sequence<i...>) {
    return std::array{obsview(data, parts[i])...};
  }(std::make_index_sequence<n + 1>());
}

/// Sequences (..., length) of differing lengths as (..., longest, sequences.size()), filled up with `value` at their
/// ends. Errors: argument (none), shape (other dims differ). Source: MLUtils.batch_sequence.
ROSIN_API Array batch_sequence(std::span<const Array> sequences, const Array& value = 0);
inline Array batch_sequence(std::initializer_list<Array> sequences, const Array& value = 0) {
  return batch_sequence(std::span<const Array>(sequences.begin(), sequences.size()), value);
}
/// x with `value` behind its elements along `dim`, up to `size` of them; where it has as many, x. Source:
/// MLUtils.rpad_constant.
ROSIN_API Array rpad_constant(const Array& x, int64_t size, const Array& value = 0, int dim = -1);
/// (x - least) / (greatest - least), of all or over `dims`: from 0 to 1; 0 where all are equal.
ROSIN_API Array rescale(const Array& x);
ROSIN_API Array rescale(const Array& x, Dims dims);

}  // namespace rosin
