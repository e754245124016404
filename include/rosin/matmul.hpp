// The matrix product.
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Matrix product: (m, k) x (k, n) -> (m, n). Further dims are batches, which broadcast: (m, k, b...) x (k, n, b...).
/// A vector a is a row, a vector b a column, and that dim is left out of the result; two vectors give a 0-d array.
/// Types: the common type; Bool and integers are multiplied in Int64 and give it, UInt64 in its own type; complex
/// elements are not conjugated.
/// Errors: shape (inner sizes differ; a 0-d operand), dtype (two different floats). Source: NumPy's matmul,
/// column-major.
ROSIN_API Array matmul(const Array& a, const Array& b);

}  // namespace rosin
