// The forms of a gather beside those that GatherAttributes names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "graph/op.hpp"

namespace rosin {

/// GatherAttributes::along of whole slices whose indices are known to lie in [0, size of the dim): no device has to be
/// asked afterwards whether they did.
inline constexpr int64_t slices_in_range = 2;

/// The first words are those of GatherAttributes, `along` being this.
inline constexpr int64_t weighed_sums = 3;

/// Of sums of few elements, each times a weight, along `dims` neighbouring dims from `dim` on, one after another:
/// operand 1 has their places (Int32), operand 2 their weights, in the type of the result. Each dim has a table of
/// taps[0][d] entries for each element of the result; behind the tables of all dims stand those of the way back, with
/// taps[1][d] entries for each element of operand 0. What a weight of 0 stands for does not count; a sum of
/// nothing is -0, so that a sum of one element times 1 is that element.
struct WeighedAttributes {
  static constexpr int most_dims = 3;
  int64_t dim = 0, along = weighed_sums;
  int32_t dims = 1, back = 0;  // 1: this is the way back, of whose tables the second ones are read
  int32_t taps[2][most_dims] = {};

  /// How many entries tables of `way` have for each element along dim d.
  int64_t taps_of(int d) const { return taps[back][d]; }
};

/// Whether the op is one of such sums; of images (spatial..., channels, batch) whether it leaves channels and batch
/// alone, so that these may stand anywhere.
inline bool sums_weighed(const Op& op) { return op.kind == Kind::gather && op.operands == 3; }
inline bool is_spatial(const WeighedAttributes& how, int rank) { return how.dim + how.dims <= rank - 2; }

/// Where the table of each dim begins that a sum reads, for the sizes of its result and of operand 0.
template <class Sizes>
std::array<int64_t, WeighedAttributes::most_dims> table_begins(const WeighedAttributes& how, const Sizes& result,
                                                               const Sizes& x) {
  std::array<int64_t, WeighedAttributes::most_dims> begins{};
  const int first = static_cast<int>(how.dim);
  int64_t at = 0;
  for (int d = 0; how.back == 1 && d < how.dims; ++d) at += how.taps[0][d] * x[first + d];
  for (int d = 0; d < how.dims; ++d) {
    begins[static_cast<size_t>(d)] = at;
    at += how.taps_of(d) * result[first + d];
  }
  return begins;
}

/// Of a gather with one operand, labels: whether these are classes is looked at, and nothing else, where `classes` is
/// not 0. Else its result has an element for each class and label.
struct LabelAttributes {
  int64_t classes = 0;
};

}  // namespace rosin
