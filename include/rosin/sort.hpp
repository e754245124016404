// Sorting. NaN counts as larger than every number: last in ascending, first in descending order. -0 equals 0.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// x sorted along `dim`; stable. The gradient goes back to the places the elements came from.
ROSIN_API Array sort(const Array& x, int dim = 0, bool descending = false);
/// Places (Int32) that sort x along `dim`; equal elements keep their order, also when descending.
ROSIN_API Array argsort(const Array& x, int dim = 0, bool descending = false);

/// The k largest (or smallest) elements along `dim`, the largest (smallest) first, and their places (Int32).
struct TopK {
  Array values;
  Array indices;
};
/// Error (argument): k is not in [0, size]. Of equal elements the first are chosen; the gradient goes to the chosen
/// ones.
ROSIN_API TopK topk(const Array& x, int64_t k, int dim = 0, bool largest = true);

}  // namespace rosin
