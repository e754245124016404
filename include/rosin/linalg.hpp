// Linear algebra of matrices of Float32 or Float64: factorisations, solving, inverses, determinants, spectra, norms.
// Every function takes one matrix (m, n) or a batch of them along further dims, (m, n, batch...); where there are two
// operands, their batches broadcast. Matrices are computed on the CPU by Eigen: those of another device are copied to
// the host at the call, and results are copied back. Everything can be differentiated, twice too.
// Errors of all: dtype (not Float32 or Float64), shape (fewer than two dims; not square where that is asked for);
// backend (librosin was built without Eigen). Those of values (kind numeric) are thrown when the result is evaluated.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/reduce.hpp>

namespace rosin::linalg {

/// The lower triangular L with L L' = a, for a symmetric positive definite a (n, n), of which the lower triangle is
/// read. The gradient is symmetric. Error (numeric): not positive definite. Source: numpy.linalg.cholesky.
ROSIN_API Array cholesky(const Array& a);

/// Which triangle of the matrix holds it, what its diagonal is, and whether it is taken transposed.
struct TriangularOptions {
  bool upper = false;
  bool unit_diagonal = false;  // ones, whatever stands there
  bool transposed = false;
};
/// x with t x = b, for a triangular t (n, n), of which the other triangle is not read; b (n, k) or a vector (n).
/// Source: scipy.linalg.solve_triangular.
ROSIN_API Array triangular_solve(const Array& t, const Array& b, const TriangularOptions& options = {});

/// x with a x = b; a (n, n), b (n, k) or a vector (n). Error (numeric): a pivot is 0. Source: numpy.linalg.solve.
ROSIN_API Array solve(const Array& a, const Array& b);
/// The inverse of a (n, n). Error (numeric): a pivot is 0. Where it is multiplied by something, solve is better.
ROSIN_API Array inv(const Array& a);

/// Factors of a (m, n) with its rows in another order: row i of lower * upper is row rows[i] of a. k = min(m, n).
struct LU {
  Array rows;   // Int32 (m)
  Array lower;  // (m, k), ones on the diagonal
  Array upper;  // (k, n)
};
/// By the largest pivot of each column. Source: scipy.linalg.lu with p_indices (inverted), torch.linalg.lu.
ROSIN_API LU lu(const Array& a);

/// The determinant of a (n, n): one number for each matrix (batch...). Its gradient is right for singular matrices too,
/// the second one for invertible ones. Source: numpy.linalg.det.
ROSIN_API Array det(const Array& a);
/// det(a) = sign * exp(logabsdet), each (batch...): 0 and -Inf for singular matrices, whose gradient is an error.
struct SignAndLog {
  Array sign, logabsdet;
};
/// Source: numpy.linalg.slogdet.
ROSIN_API SignAndLog slogdet(const Array& a);

/// a (m, n) = q r, with orthonormal columns of q (m, k) and r (k, n) upper triangular, k = min(m, n); the signs of r's
/// diagonal are those of Householder's reflections. The gradient needs the first k columns of a independent.
struct QR {
  Array q, r;
};
/// Source: numpy.linalg.qr.
ROSIN_API QR qr(const Array& a);

/// a (m, n) = u diag(s) vt, with u (m, k), s (k) descending, vt (k, n), k = min(m, n). Gradients through u and vt need
/// values that differ (and above 0 where m and n differ), and a loss that does not depend on the signs of the vectors;
/// those through s alone need nothing.
struct SVD {
  Array u, s, vt;
};
/// Error (numeric): an element is not finite. Source: numpy.linalg.svd(a, full_matrices=False).
ROSIN_API SVD svd(const Array& a);
/// Its values alone: (k, batch...).
ROSIN_API Array svdvals(const Array& a);

/// a = vectors diag(values) vectors', values (n) ascending, for a symmetric a (n, n), of which the lower triangle is
/// read. Gradients through the vectors need values that differ, and a loss that does not depend on the vectors' signs.
struct Eigh {
  Array values, vectors;
};
/// The gradient is symmetric. Error (numeric): an element is not finite. Source: numpy.linalg.eigh.
ROSIN_API Eigh eigh(const Array& a);
/// Its values alone: (n, batch...).
ROSIN_API Array eigvalsh(const Array& a);

/// The pseudo-inverse (n, m) of Moore and Penrose of a (m, n). Singular values at most `rtol` times the largest count
/// as 0; rtol < 0: max(m, n) times the type's epsilon. Error (numeric): an element is not finite.
/// Source: numpy.linalg.pinv.
ROSIN_API Array pinv(const Array& a, double rtol = -1);
/// The x of least norm among those with least |a x - b|, that is pinv(a, rtol) b; a (m, n), b (m, k) or a vector (m).
/// Source: numpy.linalg.lstsq.
ROSIN_API Array lstsq(const Array& a, const Array& b, double rtol = -1);

/// The norm of x as a vector over all dims (0-d) or some, which keep size 1: (sum |x|^order)^(1/order). Infinity gives
/// the largest size of an element, -infinity the least, 0 how many are not 0. On every device.
/// Source: torch.linalg.vector_norm.
ROSIN_API Array vector_norm(const Array& x, double order = 2);
ROSIN_API Array vector_norm(const Array& x, double order, Dims dims);

/// Norms of matrices that are no powers.
enum class MatrixNorm { frobenius, nuclear };
/// One number for each matrix of a (m, n, batch...): (batch...). Order 1 is the largest sum of a column's sizes,
/// infinity that of a row's, 2 the largest singular value; negative ones are the least of those.
/// Error (argument): another order. Source: torch.linalg.matrix_norm.
ROSIN_API Array matrix_norm(const Array& a, MatrixNorm kind = MatrixNorm::frobenius);
ROSIN_API Array matrix_norm(const Array& a, double order);

/// a (n, n) times itself n times; 0 gives the identity, negative exponents powers of the inverse.
/// Source: numpy.linalg.matrix_power.
ROSIN_API Array matrix_power(const Array& a, int64_t exponent);

}  // namespace rosin::linalg
