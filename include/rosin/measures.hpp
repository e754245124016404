// What one measures of arrays: counts, sums without NaN, covariances, distances, areas. All are made of recorded ops.
// Read first: reduce.hpp, compose.hpp.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

/// How many elements are not 0; Int64. Over dims, which keep size 1, as all reductions.
ROSIN_API Array count_nonzero(const Array& x);
ROSIN_API Array count_nonzero(const Array& x, Dims dims);
/// Sum and mean of the elements that are not NaN, which alone have a gradient; the mean of none is NaN.
ROSIN_API Array nansum(const Array& x);
ROSIN_API Array nansum(const Array& x, Dims dims);
ROSIN_API Array nanmean(const Array& x);
ROSIN_API Array nanmean(const Array& x, Dims dims);

/// The cross product of vectors of three elements along `dim`; other dims broadcast. Error (shape): another size.
ROSIN_API Array cross(const Array& a, const Array& b, int dim = 0);
/// Distances |a_i - b_j| by the norm of order p >= 0: a (features, n, batch...), b (features, m, batch...) -> (n, m,
/// batch...). Where two vectors are equal the gradient is 0. Error (shape): other features. Source: torch.cdist.
ROSIN_API Array cdist(const Array& a, const Array& b, double p = 2);
/// Covariances of features, x (features, n) -> (features, features): sums over n divided by n - correction; and
/// correlations. Error (shape): no matrix. Source: numpy.cov, numpy.corrcoef.
ROSIN_API Array cov(const Array& x, int64_t correction = 1);
ROSIN_API Array corrcoef(const Array& x);
/// The area under y by the trapezoidal rule along `dim`, which keeps size 1, and the areas up to each element but the
/// first. dx is the distance of neighbours: a number, a vector of one less than y has along `dim` (diff of the places),
/// or what broadcasts. Source: torch.trapezoid.
ROSIN_API Array trapezoid(const Array& y, const Array& dx = 1, int dim = 0);
ROSIN_API Array cumulative_trapezoid(const Array& y, const Array& dx = 1, int dim = 0);

}  // namespace rosin
