// Functions made of recorded ops: softmax and its relatives, normalising, products of vectors, triangles of matrices.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

/// exp(x) / sum(exp(x)) along dim 0 (or `dim`), without overflow; -Inf gives 0. Integers become Float32. A row that is
/// wholly -Inf has no distribution: it gives NaN, as in NNlib and PyTorch.
ROSIN_API Array softmax(const Array& x);
ROSIN_API Array softmax(const Array& x, int dim);
/// log(softmax(x)), without overflow and without log(0); -Inf gives -Inf, a row that is wholly -Inf gives NaN.
ROSIN_API Array logsoftmax(const Array& x);
ROSIN_API Array logsoftmax(const Array& x, int dim);
/// (x - mean) / sqrt(var + eps) over the last dim (or `dims`), with the biased variance. Source: Flux.normalise, 0.16.
ROSIN_API Array normalise(const Array& x);
ROSIN_API Array normalise(const Array& x, Dims dims, double eps = 1e-5);
/// Sum of products of two arrays of one shape; 0-d; complex ones are not conjugated. Error (shape).
ROSIN_API Array dot(const Array& a, const Array& b);
/// a (m), b (n) -> (m, n) of all products. Error (shape): not vectors.
ROSIN_API Array outer(const Array& a, const Array& b);
/// Cosine of the angle between a and b along `dim` (which keeps size 1); 0 where one of them is 0.
ROSIN_API Array cosine_similarity(const Array& a, const Array& b, int dim = 0);
/// The matrix (m, n, ...) with zeros above (tril) or below (triu) diagonal k; k > 0 lies above the main one.
ROSIN_API Array tril(const Array& x, int64_t k = 0);
ROSIN_API Array triu(const Array& x, int64_t k = 0);

}  // namespace rosin
