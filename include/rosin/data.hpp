// Observations: the last dim of every array counts them. Arrays, tuples, structs and maps of arrays are data as they
// stand; a class of your own is data when it has numobs() and getobs(). Read next: loader.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/export.hpp>
#include <rosin/random.hpp>
#include <rosin/walk.hpp>

namespace rosin {

// --- For compiled code; numobs, getobs and the rest are what one calls.

/// The common number of observations of all arrays. Error (shape): they differ, or an array is 0-d; (argument): there
/// is no array, or a container of numbers, which is no array yet. `op` begins the message.
ROSIN_API int64_t count_observations(ModelView data, const char* op);
/// Replaces each array (..., n) by a fresh one (..., at.size()) with copies of these observations. Not recorded.
ROSIN_API void take_observations(ModelEdit batch, std::span<const int64_t> at);
/// Replaces each array (...) of `batch`, which is a copy of the first observation, by (..., observations.size()).
ROSIN_API void stack_observations(ModelEdit batch, std::span<const ModelView> observations);
/// 0 ... n - 1 in the order that the generator gives; it moves on. Every order is equally likely.
ROSIN_API std::vector<int64_t> shuffled_order(int64_t n, Rng& rng);
/// Error (argument) unless 0 <= at[i] < n.
ROSIN_API void check_observations(std::span<const int64_t> at, int64_t n);
/// Throws an Error with the error's text and the observation at which it arose.
[[noreturn]] ROSIN_API void rethrow_with_observation(const std::exception& error, int64_t observation);
/// How many of n observations belong to the first part. Error (argument): not in [0, 1].
ROSIN_API int64_t share_of(double share, int64_t n);

/// A class that gives a batch: `auto getobs(std::span<const int64_t> at) const`.
template <class T>
concept BatchData = requires(const T& data, std::span<const int64_t> at) {
  { data.numobs() } -> std::convertible_to<int64_t>;
  data.getobs(at);
};
/// A class that gives one observation, of which batches are stacked: `auto getobs(int64_t i) const`.
template <class T>
concept SingleData = !BatchData<T> && requires(const T& data, int64_t i) {
  { data.numobs() } -> std::convertible_to<int64_t>;
  data.getobs(i);
};
template <class T>
concept Observations = BatchData<T> || SingleData<T> || Walkable<T>;

// ---

/// The number of observations.
template <Observations Data> int64_t numobs(const Data& data) {
  if constexpr (BatchData<Data> || SingleData<Data>) return static_cast<int64_t>(data.numobs());
  else return count_observations(data, "numobs");
}

/// Observations of one structure side by side: arrays (...) become (..., observations.size()).
template <Walkable Observation> Observation batch(const std::vector<Observation>& observations) {
  std::vector<ModelView> views(observations.begin(), observations.end());
  Observation result = observations.empty() ? Observation() : copy_of(observations.front());
  stack_observations(result, views);
  return result;
}
/// The opposite: each observation without the last dim.
ROSIN_API std::vector<Array> unbatch(const Array& x);

/// The observations at these places. What getobs(i) of a class throws arrives as an Error that names i. Of arrays: the
/// same structure with fresh arrays (..., at.size()).
template <Observations Data> auto getobs(const Data& data, std::span<const int64_t> at) {
  if constexpr (BatchData<Data>) {
    return data.getobs(at);
  } else if constexpr (SingleData<Data>) {
    std::vector<decltype(data.getobs(at[0]))> found;
    for (int64_t i : at) {
      try {
        found.push_back(data.getobs(i));
      } catch (const std::exception& error) {
        rethrow_with_observation(error, i);
      }
    }
    return batch(found);
  } else {
    Data taken = copy_of(data);
    take_observations(taken, at);
    return taken;
  }
}
template <Observations Data> auto getobs(const Data& data, const std::vector<int64_t>& at) {
  return getobs(data, std::span<const int64_t>(at));
}

/// Data that is mapped when it is read, batch by batch: `mapobs(gpu, std::tuple{X, Y})`.
template <class F, Observations Data> struct MappedData {
  F function;
  Data data;

  int64_t numobs() const { return rosin::numobs(data); }
  auto getobs(std::span<const int64_t> at) const { return function(rosin::getobs(data, at)); }
};
template <class F, Observations Data> MappedData<F, Data> mapobs(F f, Data data) {
  return {std::move(f), std::move(data)};
}

/// All observations in random order, drawn from `rng` or this thread's generator.
template <Observations Data> auto shuffleobs(const Data& data, Rng& rng) {
  return getobs(data, shuffled_order(numobs(data), rng));
}
template <Observations Data> auto shuffleobs(const Data& data) { return shuffleobs(data, default_rng()); }

struct SplitOptions {
  double at = 0.5;       // share of the first part, from 0 to 1
  bool shuffle = false;  // in random order, drawn from this thread's generator
};
/// Two parts: `auto [train, test] = splitobs(data, {.at = 0.8});`.
template <Observations Data> auto splitobs(const Data& data, const SplitOptions& options) {
  const int64_t n = numobs(data), first = share_of(options.at, n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  if (options.shuffle) order = shuffled_order(n, default_rng());
  const auto cut = static_cast<size_t>(first);
  const std::span<const int64_t> all(order);
  return std::pair(getobs(data, all.first(cut)), getobs(data, all.subspan(cut)));
}

}  // namespace rosin
