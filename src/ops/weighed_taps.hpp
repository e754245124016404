// Sums of few elements along a dim, each times a weight: what interpolation is made of. Read next: weighed_taps.cpp,
// resample.cpp (who makes them).
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

/// Error (argument): a dim would get more than 2^24 elements, for each of which a table has entries.
void require_resizable(std::string_view op, double out);

/// Of one dim: the elements that each element of the result is made of.
class WeighedTaps {
 public:
  explicit WeighedTaps(int64_t in) : in_(in) {}

  /// One more for the element that is being described; places below 0 or from `in` on are those at the border.
  void add(int64_t place, double weight);
  /// The element is described; the next one follows.
  void end_element();

  int64_t in() const noexcept { return in_; }
  int64_t out() const noexcept { return static_cast<int64_t>(ends_.size()); }
  /// The most that an element is made of, and that an element of the input is part of; at least 1.
  int32_t most() const;
  int32_t most_back() const;
  /// Appends `count` places and weights for each element; those beyond what it is made of have the weight 0.
  void append(int32_t count, std::vector<int32_t>& places, std::vector<double>& weights) const;
  /// The same for each element of the input: those of the result that it is part of.
  void append_back(int32_t count, std::vector<int32_t>& places, std::vector<double>& weights) const;

 private:
  struct Tap {
    int32_t place;
    double weight;
  };
  std::vector<int32_t> times_used() const;

  int64_t in_;
  std::vector<Tap> taps_;
  std::vector<int64_t> ends_;  // of each element, among all taps
};

/// x (a float or complex; halves are computed in Float32) with dims `dim`, dim + 1, ... replaced by those sums, one dim
/// after another. Runs on the device of x.
Array weighed(const Array& x, int dim, std::span<const WeighedTaps> taps);

/// x with the elements of those dims at `places`, one list for each dim.
Array picked(const Array& x, int dim, std::span<const std::vector<int64_t>> places);

/// What taps follow from, all of it, with the op's name in front: a thread keeps the tables of the last ones.
class TapsKey {
 public:
  explicit TapsKey(std::string_view op) : op_(op) {}
  TapsKey& add(int64_t number) { return numbers_.push_back(number), *this; }
  TapsKey& add(double number) { return add(std::bit_cast<int64_t>(number)); }
  bool operator==(const TapsKey&) const = default;

 private:
  std::string_view op_;  // a literal
  std::vector<int64_t> numbers_;
};

/// The same two, of what `make` makes where its tables are not at hand.
Array weighed(const Array& x, int dim, const TapsKey& key, const std::function<std::vector<WeighedTaps>()>& make);
Array picked(const Array& x, int dim, const TapsKey& key,
             const std::function<std::vector<std::vector<int64_t>>()>& make);

}  // namespace rosin
