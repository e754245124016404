// Finding and counting: places where something holds, classes of values, quantiles. Functions whose result's size
// depends on values evaluate their operand. Read first: index.hpp, sort.hpp.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

/// The places of the elements that are not 0 in column-major order: Int64 (count), for x seen as a vector. Evaluates x.
/// Source: torch.nonzero of the vector, Julia's findall.
ROSIN_API Array nonzero(const Array& x);
/// The elements of x where the Bool array `mask`, of x's shape, is true: (count). Evaluates the mask, not x; the
/// gradient goes to the elements chosen. Error (shape, dtype). Source: torch.masked_select.
ROSIN_API Array masked_select(const Array& x, const Array& mask);

/// Values that occur in x, in ascending order, NaN last and once; and, for each element of x, which of them it is, and
/// how often each occurs. Evaluates x.
/// Whether each element of x is one of `values`; NaN is none. Bool, of x's shape. Error (dtype): types that differ.
ROSIN_API Array isin(const Array& x, const Array& values);

struct Unique {
  Array values;   // (count), of x's type
  Array inverse;  // Int32, of x's shape: x is gather(values, inverse)
  Array counts;   // Int64 (count)
};
/// Source: numpy.unique.
ROSIN_API Unique unique(const Array& x);
/// The same of slices along `dim`, ordered by their first elements (dim 0 fastest) that differ: values has size
/// (count) in that dim, inverse is (size of the dim). The gradient of values goes to the first slice of each kind.
/// Error (shape): no such dim. Source: torch.unique(x, dim).
ROSIN_API Unique unique(const Array& x, int dim);

/// How many elements of the ascending vector are below each element of `values` (or at most it, with `right`): Int32,
/// of the shape of values. Of `sorted` with more dims, all but dim 0 are those of values, each column for itself. Error
/// (shape). Source: numpy.searchsorted, torch.searchsorted.
ROSIN_API Array searchsorted(const Array& sorted, const Array& values, bool right = false);

/// How often each number in [0, classes) occurs in x (integers of any shape): Int64 (classes). Others are left out.
/// Source: numpy.bincount, with the number of classes stated.
ROSIN_API Array bincount(const Array& x, int64_t classes);
/// The same for weights of x's shape: sums of them, of their type.
ROSIN_API Array bincount(const Array& x, int64_t classes, const Array& weights);
/// How many elements of x lie in each of `bins` equal parts of [low, high], the last with its end: Int64 (bins).
/// Error (argument): no bins, or high is not above low. Source: numpy.histogram.
ROSIN_API Array histogram(const Array& x, int64_t bins, double low, double high);

/// What stands between two elements: a point of the line that joins them, one of them, their middle, the nearer one (of
/// two equally near ones that of even rank).
enum class Between : uint8_t { linear, lower, higher, midpoint, nearest };
/// The quantile q in [0, 1] over some dims (none: all), which keep size 1. NaN where an element is NaN. Error
/// (argument): q is outside, or there is no element. Source: numpy.quantile, Julia's Statistics.quantile.
ROSIN_API Array quantile(const Array& x, double q, Between between = Between::linear);
ROSIN_API Array quantile(const Array& x, double q, Dims dims, Between between = Between::linear);
/// The same of quantiles q, a number or a vector (n): over all elements in the shape of q, over dims with a new last
/// dim for a vector. NaN where q is outside [0, 1]. It has a gradient by q, too.
ROSIN_API Array quantile(const Array& x, const Array& q, Between between = Between::linear);
ROSIN_API Array quantile(const Array& x, const Array& q, Dims dims, Between between = Between::linear);
/// Half of the elements lie on each side: quantile 0.5. Source: numpy.median (torch.median takes the lower of two).
ROSIN_API Array median(const Array& x);
ROSIN_API Array median(const Array& x, Dims dims);

}  // namespace rosin
