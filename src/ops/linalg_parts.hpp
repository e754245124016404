// What the ops of linear algebra share: checks of matrices, their batches, and the way to the CPU and back.
// Read first: rosin/linalg.hpp. Read next: linalg_solvers.cpp, linalg_spectra.cpp.
#pragma once

#include <rosin/elementwise.hpp>
#include <rosin/linalg.hpp>
#include <rosin/movement.hpp>

#include "graph/transfer.hpp"
#include "ops/shapes.hpp"

namespace rosin::linalg {

/// A matrix of the CPU: a copy, made at the call, where x stands elsewhere. Error (dtype, shape).
Array matrix_of(const Op& op, const Array& x);
Array square_of(const Op& op, const Array& x);

/// Two operands of one type whose batches are alike; a vector b is a column.
struct Operands {
  Array a, b;
};
/// Error (dtype, shape): types or numbers of rows differ.
Operands operands_of(const Op& op, const Array& a, const Array& b);

/// y on the device of x.
inline Array beside(const Array& x, const Array& y) { return transferred(y, x.node()->device); }
/// A solution beside the b that was given: of a vector a vector.
Array solution_for(const Array& b, const Array& x);

/// The shape (rows, columns, batch...) for the batch of a; (rows, batch...); (batch...).
inline Shape with_matrix(const Array& a, int64_t rows, int64_t columns) {
  return with_dims(a.shape(), 0, 2, {rows, columns});
}
inline Shape with_vector(const Array& a, int64_t rows) { return with_dims(a.shape(), 0, 2, {rows}); }
inline Shape without_matrix(const Array& a) { return with_dims(a.shape(), 0, 2, {}); }

/// A vector (n, batch...) as a column (n, 1, batch...) or a row (1, n, batch...); a number (batch...) as (1, 1, ...).
inline Array as_column(const Array& v) { return reshape(v, with_dims(v.shape(), 0, 1, {v.size(0), 1})); }
inline Array as_row(const Array& v) { return reshape(v, with_dims(v.shape(), 0, 1, {1, v.size(0)})); }
inline Array as_matrix(const Array& number) { return reshape(number, with_dims(number.shape(), 0, 0, {1, 1})); }

Op& routine_op(std::string_view name, Routine routine, int operands, int results, std::string_view doc);
inline Array symmetric(const Array& x) { return (x + transpose(x)) * 0.5; }

/// x with t x = b, of matrices of the CPU with one batch.
Array triangle_solved(const Array& t, const Array& b, const TriangularAttributes& how);
/// b inv(t) with the same t, taken as `how` says.
inline Array triangle_solved_right(const Array& b, const Array& t, TriangularAttributes how) {
  how.transposed = 1 - how.transposed;
  return transpose(triangle_solved(t, transpose(b), how));
}
inline constexpr TriangularAttributes lower_triangle{}, unit_lower_triangle{.unit = 1}, upper_triangle{.upper = 1};
inline constexpr TriangularAttributes transposed(TriangularAttributes how) {
  how.transposed = 1 - how.transposed;
  return how;
}

}  // namespace rosin::linalg
