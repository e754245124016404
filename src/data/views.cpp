// Places of folds, windows, groups and samples; padded sequences (views.hpp).
#include <rosin/views.hpp>

#include <cmath>
#include <numeric>
#include <string>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/model.hpp>
#include <rosin/movement.hpp>

namespace rosin {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorKind::argument, text); }

void check_labels(const char* op, const Array& labels, int64_t n) {
  if (labels.is_nothing() || labels.rank() != 1 || (n >= 0 && labels.size(0) != n)) {
    throw Error(ErrorKind::shape, std::string(op) + ": labels are (n), one for each observation; got " +
                                      (labels.is_nothing() ? "nothing" : to_string(labels.shape())) +
                                      (n < 0 ? "" : " for " + std::to_string(n)) +
                                      "; write onecold(y) for one-hot ones");
  }
  if (is_float(labels.dtype()) || is_complex(labels.dtype())) {
    throw Error(ErrorKind::dtype, std::string(op) + ": labels are integers; got " + to_string(labels.dtype()) +
                                      "; write cast(labels, Int32)");
  }
}

std::map<int64_t, std::vector<int64_t>> groups_of(const char* op, const Array& labels, int64_t n) {
  check_labels(op, labels, n);
  std::map<int64_t, std::vector<int64_t>> groups;
  const std::vector<int64_t> values = labels.to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) groups[values[i]].push_back(static_cast<int64_t>(i));
  return groups;
}

void shuffle(std::vector<int64_t>& places, Rng& rng) {
  places = detail::looked_up(detail::shuffled_order(static_cast<int64_t>(places.size()), rng), places);
}

void check_count(int64_t n, int64_t count) {
  if (count >= 0 && (n > 0 || count == 0)) return;
  refuse("randobs: there is a number of observations to draw, 0 or more, and some to draw from; got " +
         std::to_string(count) + " of " + std::to_string(n));
}

}  // namespace

std::vector<int64_t> detail::fold_starts(int64_t n, int64_t folds) {
  if (folds < 2 || folds > n) {
    refuse("kfolds: there are 2 folds or more, and an observation for each; got " + std::to_string(folds) +
           " folds of " + std::to_string(n) + " observations");
  }
  std::vector<int64_t> starts{0};
  for (int64_t i = 0; i < folds; ++i) starts.push_back(starts.back() + n / folds + (i < n % folds ? 1 : 0));
  return starts;
}

std::vector<int64_t> detail::order_from(int64_t begin, int64_t end) {
  std::vector<int64_t> order(static_cast<size_t>(end - begin));
  std::iota(order.begin(), order.end(), begin);
  return order;
}

std::vector<int64_t> detail::order_without(int64_t n, int64_t begin, int64_t end) {
  std::vector<int64_t> order = order_from(0, n);
  order.erase(order.begin() + begin, order.begin() + end);
  return order;
}

int64_t detail::window_count(int64_t n, int64_t size, int64_t stride) {
  if (size < 1 || stride < 1) {
    refuse("slidingwindow: size and stride are 1 or more; got " + std::to_string(size) + " and " +
           std::to_string(stride));
  }
  return n < size ? 0 : (n - size) / stride + 1;
}

int64_t detail::batch_count(int64_t n, int64_t size, bool partial) {
  if (size < 1) refuse("batchview: the size of batches is 1 or more; got " + std::to_string(size));
  return n / size + (partial && n % size != 0 ? 1 : 0);
}

void detail::check_observation(int64_t i, int64_t n) { detail::check_observations(std::span(&i, 1), n); }

std::vector<int64_t> detail::random_places(int64_t n, int64_t count, Rng& rng) {
  check_count(n, count);
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t& place : places) place = static_cast<int64_t>(rng.below(static_cast<uint64_t>(n)));
  return places;
}

std::vector<int64_t> detail::weighted_places(int64_t n, int64_t count, std::span<const double> weights, Rng& rng) {
  check_count(n, count);
  std::vector<double> sums;
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0)) refuse("randobs: weights are not negative; got " + std::to_string(weight));
    sums.push_back(sum += weight);
  }
  if (static_cast<int64_t>(sums.size()) != n || !(sum > 0) || !std::isfinite(sum)) {
    refuse("randobs: there is a weight for each observation, and a finite sum above 0; got " +
           std::to_string(sums.size()) + " weights with the sum " + std::to_string(sum) + " for " + std::to_string(n));
  }
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t& place : places) {
    const double drawn = static_cast<double>(rng.next() >> 11) * 0x1p-53 * sum;
    place = std::upper_bound(sums.begin(), sums.end() - 1, drawn) - sums.begin();
  }
  return places;
}

std::vector<int64_t> detail::oversampled(const Array& labels, double fraction, Rng* rng, int64_t n) {
  const auto groups = groups_of("oversample", labels, n);
  if (!(fraction > 0 && fraction <= 1)) {
    refuse("oversample: the fraction of the most frequent class is in (0, 1]; got " + std::to_string(fraction));
  }
  size_t most = 0;
  for (const auto& [label, at] : groups) most = std::max(most, at.size());
  const auto wanted = static_cast<size_t>(std::llround(fraction * static_cast<double>(most)));
  std::vector<int64_t> places = detail::natural_order(n);
  for (const auto& [label, at] : groups) {
    std::vector<int64_t> source = at;
    for (size_t have = at.size(), next = 0; have < wanted; ++have, ++next) {
      if (rng && next % at.size() == 0) shuffle(source, *rng);
      places.push_back(source[next % at.size()]);
    }
  }
  if (rng) shuffle(places, *rng);
  return places;
}

std::vector<int64_t> detail::undersampled(const Array& labels, Rng* rng, int64_t n) {
  auto groups = groups_of("undersample", labels, n);
  size_t fewest = static_cast<size_t>(n);
  for (const auto& [label, at] : groups) fewest = std::min(fewest, at.size());
  std::vector<int64_t> places;
  for (auto& [label, at] : groups) {
    if (rng) shuffle(at, *rng);
    places.insert(places.end(), at.begin(), at.begin() + static_cast<std::ptrdiff_t>(fewest));
  }
  if (rng) shuffle(places, *rng);
  else std::sort(places.begin(), places.end());
  return places;
}

std::vector<std::vector<int64_t>> detail::stratified_parts(const Array& labels, std::span<const double> shares,
                                                           int64_t n) {
  std::vector<std::vector<int64_t>> parts(shares.size() + 1);
  for (const auto& [label, at] : groups_of("splitobs", labels, n)) {
    std::vector<int64_t> ends = detail::part_starts(shares, static_cast<int64_t>(at.size()));
    ends.push_back(static_cast<int64_t>(at.size()));
    int64_t begin = 0;
    for (size_t part = 0; part < parts.size(); begin = ends[part++]) {
      parts[part].insert(parts[part].end(), at.begin() + begin, at.begin() + ends[part]);
    }
  }
  for (std::vector<int64_t>& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

void detail::drop_observation_dims(ModelEdit observation) {
  std::vector<detail::ArrayPlace<Array*>> arrays;
  detail::list_arrays(observation, arrays);
  for (const auto& place : arrays) *place.array = squeeze(*place.array, -1);
}

std::map<int64_t, std::vector<int64_t>> group_indices(const Array& labels) {
  return groups_of("group_indices", labels, -1);
}

std::map<int64_t, int64_t> group_counts(const Array& labels) {
  std::map<int64_t, int64_t> counts;
  for (const auto& [label, at] : groups_of("group_counts", labels, -1)) {
    counts[label] = static_cast<int64_t>(at.size());
  }
  return counts;
}

Array rpad_constant(const Array& x, int64_t size, const Array& value, int dim) {
  const int64_t have = x.size(dim);
  return have >= size ? x : pad(x, dim, 0, size - have, value);
}

Array batch_sequence(std::span<const Array> sequences, const Array& value) {
  if (sequences.empty()) refuse("batch_sequence: there is a sequence or more; got none");
  int64_t longest = 0;
  for (const Array& sequence : sequences) {
    if (sequence.is_nothing() || sequence.rank() < 1) {
      throw Error(ErrorKind::shape, "batch_sequence: sequences are (..., length); got " +
                                        (sequence.is_nothing() ? "nothing" : to_string(sequence.shape())));
    }
    longest = std::max(longest, sequence.size(-1));
  }
  std::vector<Array> padded;
  for (const Array& sequence : sequences) padded.push_back(rpad_constant(sequence, longest, value));
  return stack(padded, -1);
}

PackedSequences pack_sequences(std::span<const Array> sequences, int64_t length, const Array& value) {
  if (sequences.empty() || length < 1) {
    refuse("pack_sequences: there is a sequence or more, and columns have an element or more; got " +
           std::to_string(sequences.size()) + " for columns of " + std::to_string(length));
  }
  std::vector<int32_t> owner;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].is_nothing() || sequences[i].rank() < 1) {
      throw Error(ErrorKind::shape, "pack_sequences: sequences are (..., time); got a number or nothing; reshape it");
    }
    owner.insert(owner.end(), static_cast<size_t>(sequences[i].size(-1)), static_cast<int32_t>(i));
  }
  const Array joined = concat(sequences, -1);
  const int64_t time = joined.size(-1), columns = (time + length - 1) / length;
  owner.resize(static_cast<size_t>(columns * length), -1);
  std::vector<int64_t> sizes;
  for (int d = 0; d + 1 < joined.rank(); ++d) sizes.push_back(joined.size(d));
  sizes.insert(sizes.end(), {length, columns});
  return {reshape(rpad_constant(joined, columns * length, value), sizes),
          Array::borrow(std::move(owner), {length, columns})};
}

namespace {

Array rescaled(const Array& x, const Array& least, const Array& range) {
  return (x - least) / where(range > 0, range, 1);
}

}  // namespace

Array rescale(const Array& x) {
  const Array least = minimum(x);
  return rescaled(x, least, maximum(x) - least);
}

Array rescale(const Array& x, Dims dims) {
  const Array least = minimum(x, dims);
  return rescaled(x, least, maximum(x, dims) - least);
}

}  // namespace rosin
