// Observations: the last dim of every array counts them. Arrays, tuples, structs and maps of arrays are data as they
// stand; a class of your own is data when it has numobs() and getobs(). What selects, splits, shuffles or maps
// observations reads none: it gives a view, which reads when it is read. Read next: loader.hpp.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/export.hpp>
#include <rosin/move.hpp>
#include <rosin/random.hpp>
#include <rosin/walk.hpp>

namespace rosin {

namespace detail {

/// The common number of observations of all arrays. Error (shape): they differ, or an array is 0-d; (argument): there
/// is no array, or a container of numbers, which is no array yet. `op` begins the message.
ROSIN_API int64_t count_observations(ModelView data, const char* op);
/// Replaces each array (..., n) by a fresh one (..., at.size()) with copies of these observations, on the device of the
/// array. Not recorded.
ROSIN_API void take_observations(ModelEdit batch, std::span<const int64_t> at);
/// Replaces each array (...) of `batch`, which is a copy of the first observation, by (..., observations.size()).
ROSIN_API void stack_observations(ModelEdit batch, std::span<const ModelView> observations);
/// 0 ... n - 1 in the order that the generator gives; it moves on. Every order is equally likely.
ROSIN_API std::vector<int64_t> shuffled_order(int64_t n, Rng& rng);
/// Error (argument) unless 0 <= at[i] < n.
ROSIN_API void check_observations(std::span<const int64_t> at, int64_t n);
/// Throws an Error with the error's text and the observation at which it arose.
[[noreturn]] ROSIN_API void rethrow_with_observation(const std::exception& error, int64_t observation);
/// Of n observations in `shares.size() + 1` parts, where each part but the first begins. Error (argument): a share that
/// is not in [0, 1], or a sum above 1.
ROSIN_API std::vector<int64_t> part_starts(std::span<const double> shares, int64_t n);
/// 0 ... n - 1.
ROSIN_API std::vector<int64_t> natural_order(int64_t n);
/// Replaces each place by what `at` has there. Error (argument): outside `at`.
ROSIN_API std::vector<int64_t> looked_up(std::span<const int64_t> places, std::span<const int64_t> at);

}  // namespace detail

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

/// The number of observations.
template <Observations Data> int64_t numobs(const Data& data) {
  if constexpr (BatchData<Data> || SingleData<Data>) return static_cast<int64_t>(data.numobs());
  else return detail::count_observations(data, "numobs");
}

/// Observations of one structure side by side: arrays (...) become (..., observations.size()).
template <Walkable Observation> Observation batch(const std::vector<Observation>& observations) {
  std::vector<ModelView> views(observations.begin(), observations.end());
  Observation result = observations.empty() ? Observation() : copy_of(observations.front());
  detail::stack_observations(result, views);
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
        detail::rethrow_with_observation(error, i);
      }
    }
    return batch(found);
  } else {
    Data taken = copy_of(data);
    detail::take_observations(taken, at);
    return taken;
  }
}
template <Observations Data> auto getobs(const Data& data, const std::vector<int64_t>& at) {
  return getobs(data, std::span<const int64_t>(at));
}
/// All of them, read at once.
template <Observations Data> auto getobs(const Data& data) { return getobs(data, detail::natural_order(numobs(data))); }

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

/// Some observations of data in an order of their own: `indices()[i]` is observation i. Holds the data (arrays are
/// shared) and reads it when it is read itself. A view of arrays converts to them, and a view of a tuple of arrays
/// comes apart as one: `auto [x, y] = view;`; both read all of it.
template <Observations Data> class ObsView {
 public:
  /// Error (argument): an index that the data does not have.
  ObsView(Data data, std::vector<int64_t> indices) : data_(std::move(data)), indices_(std::move(indices)) {
    detail::check_observations(indices_, rosin::numobs(data_));
  }

  int64_t numobs() const noexcept { return static_cast<int64_t>(indices_.size()); }
  auto getobs(std::span<const int64_t> at) const { return rosin::getobs(data_, detail::looked_up(at, indices_)); }
  const Data& data() const noexcept { return data_; }
  const std::vector<int64_t>& indices() const noexcept { return indices_; }

  operator Data() const
    requires Walkable<Data>
  {
    return rosin::getobs(data_, indices_);
  }
  /// For `view | device`: its observations, read and moved.
  auto rosin_moved(const Device& device) const
    requires Movable<decltype(rosin::getobs(std::declval<const Data&>(), std::span<const int64_t>()))>
  {
    return rosin::getobs(data_, indices_) | device;
  }

  static constexpr bool rosin_leaf = true;  // data, not a model

 private:
  Data data_;
  std::vector<int64_t> indices_;
};

/// The observations at these places, in this order, as a view. A view of a view is a view of the data below.
template <Observations Data> ObsView<Data> obsview(const Data& data, std::vector<int64_t> indices) {
  return {data, std::move(indices)};
}
template <Observations Data> ObsView<Data> obsview(const ObsView<Data>& view, const std::vector<int64_t>& indices) {
  return {view.data(), detail::looked_up(indices, view.indices())};
}

/// Element i of the observations of a view of a tuple of arrays.
template <size_t i, Observations Data>
  requires Walkable<Data> && reflect::TupleLike<Data>
auto get(const ObsView<Data>& view) {
  return getobs(std::get<i>(view.data()), view.indices());
}

/// All observations in random order, drawn from `rng` or this thread's generator now, as a view.
template <Observations Data> auto shuffleobs(const Data& data, Rng& rng) {
  return obsview(data, detail::shuffled_order(numobs(data), rng));
}
template <Observations Data> auto shuffleobs(const Data& data) { return shuffleobs(data, default_rng()); }

struct SplitOptions {
  double at = 0.5;       // share of the first part, from 0 to 1
  bool shuffle = false;  // in random order, drawn from this thread's generator
};
/// Parts of these shares and one of what remains, as views: `auto [train, valid, test] = splitobs(data, std::array{0.7,
/// 0.2});`. In random order: `splitobs(shuffleobs(data), std::array{0.7, 0.2})`. Errors (argument): a share outside [0,
/// 1], a sum above 1.
template <Observations Data, size_t n> auto splitobs(const Data& data, const std::array<double, n>& shares) {
  const std::vector<int64_t> order = detail::natural_order(numobs(data)),
                             starts = detail::part_starts(shares, numobs(data));
  const auto part = [&](size_t i) {
    const auto begin = i == 0 ? order.begin() : order.begin() + starts[i - 1];
    const auto end = i == n ? order.end() : order.begin() + starts[i];
    return obsview(data, std::vector<int64_t>(begin, end));
  };
  return
      [&]<size_t... i>(std::index_sequence<i...>) { return std::array{part(i)...}; }(std::make_index_sequence<n + 1>());
}
/// Two parts, as views: `auto [train, test] = splitobs(data, {.at = 0.8});`.
template <Observations Data> auto splitobs(const Data& data, const SplitOptions& options) {
  const std::array shares{options.at};
  auto [first, second] =
      splitobs(options.shuffle ? shuffleobs(data) : obsview(data, detail::natural_order(numobs(data))), shares);
  return std::pair(std::move(first), std::move(second));
}

namespace reflect {

/// Whether reading runs code of the user's, which may draw random numbers.
template <class Data> inline constexpr bool runs_code = BatchData<Data> || SingleData<Data>;
template <class Data> inline constexpr bool runs_code<ObsView<Data>> = runs_code<Data>;

}  // namespace reflect
}  // namespace rosin

template <class Data>
  requires rosin::Walkable<Data> && rosin::reflect::TupleLike<Data>
struct std::tuple_size<rosin::ObsView<Data>> : std::tuple_size<Data> {};
template <size_t i, class Data>
  requires rosin::Walkable<Data> && rosin::reflect::TupleLike<Data>
struct std::tuple_element<i, rosin::ObsView<Data>> : std::tuple_element<i, Data> {};
