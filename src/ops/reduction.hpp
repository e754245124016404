// What the families of ops share about reductions and scans, beside the public functions.
#pragma once

#include <cstdint>
#include <string_view>

#include <rosin/array.hpp>
#include <rosin/reduce.hpp>

#include "graph/op.hpp"
#include "graph/reducer.hpp"

namespace rosin {

/// The dims of `dims` as a bit mask for arrays of this shape. Error (shape).
uint64_t dims_mask(std::string_view op, const Dims& dims, const Shape& shape);
/// All dims of the shape.
uint64_t all_dims(const Shape& shape);
/// Number of elements that are combined into one.
int64_t reduced_count(const Shape& shape, uint64_t mask);

/// Reductions by mask; reduced dims keep size 1, but the result has at most `rank` dims (those left out have size 1).
/// Types as in reduce.hpp.
Array sum_over(const Array& x, uint64_t mask, int rank = Shape::max_rank);
Array mean_over(const Array& x, uint64_t mask, int rank = Shape::max_rank);
Array maximum_over(const Array& x, uint64_t mask, int rank = Shape::max_rank);
/// The largest elements, as a constant: no gradient. What stable forms of exp and norm subtract or divide by.
Array peak_over(const Array& x, uint64_t mask);
Array logsumexp_over(const Array& x, uint64_t mask);

/// The type in which elements are summed and multiplied, and what sums, running sums and contractions give: Int64 for
/// Bool and integers, as their own would overflow; UInt64 and floats stay.
DType sum_type(DType type);

/// Floats stay; integers and Bool become Float32.
Array as_float(const Array& x);
/// What functions of many elements are computed in: Float32 for the halves; and back to x's own type where that is a
/// half.
Array wide(const Array& x);
Array narrow(const Array& result, const Array& x);
/// |x|^2, real also where x is complex.
Array squared_size(const Array& x);
/// sum(|distance|^2) / count of distance = x - mean(x), of as many elements or, corrected, one fewer. Its gradient goes
/// to x at once: of what distances pass on to the mean nothing is left, as they add up to 0.
Array spread_over(const Array& x, const Array& distance, uint64_t mask, bool corrected = false);
/// Mean, variance (not corrected) and distances from the mean, by one pass over x: of its distances from an element in
/// the middle. The relative error of the variance grows with the square of that element's distance from the mean, in
/// deviations: an element far out there costs digits, the mean's own size costs none. Source: Chan, Golub and LeVeque,
/// Algorithms for computing the sample variance (1983), shifted data.
struct Spread {
  Array mean, variance, distance;  // of wide(x)
};
Spread spread_in_one_pass(const Array& x, uint64_t mask);
/// sqrt with gradient 0 at 0.
Array root(const Array& x);

/// Registers the scan of a reducer, and records it; its gradient follows from the reducer's slopes.
Op& running_op(std::string_view name, std::string_view doc, const Reducer& reducer);
Array record_scan(const Op& op, const Array& x, int dim, bool reversed);

/// Running product from one end, including each element itself.
Array running_product(const Array& x, int dim, bool reversed);
/// At each place along `dim` the product of all other elements, also where some are 0.
Array product_of_others(const Array& x, int dim);
/// h[i] = a[i] * h[i - 1] + b[i] along `dim` (reversed: h[i + 1]), starting from 0; a and b have one shape and type.
Array recurrence(const Array& a, const Array& b, int dim, bool reversed);

}  // namespace rosin
