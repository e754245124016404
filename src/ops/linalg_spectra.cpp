// QR, singular values, eigenvalues, pseudo-inverses and norms; see rosin/linalg.hpp. Gradients are written in array
// ops, of the same family too, so that they have gradients.
#include <cmath>
#include <limits>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/matmul.hpp>

#include "graph/refuse_type.hpp"
#include "ops/linalg_parts.hpp"

namespace rosin::linalg {
namespace {

Array or_zeros(const Array& gradient, const Array& like) { return gradient.is_nothing() ? zeros_like(like) : gradient; }

/// Of a with independent columns (Walter, Lehmann and Lamour 2012).
Array by_full_rank(const Array& q, const Array& r, const Array& by_q, const Array& by_r) {
  const Array inner = matmul(r, transpose(by_r)) - matmul(transpose(by_q), q);
  const Array mirrored = tril(inner) + transpose(tril(inner, -1));
  return triangle_solved_right(by_q + matmul(q, mirrored), r, transposed(upper_triangle));
}

void qr_gradient(Backward& b) {
  const Array a = b.in(0);
  const int64_t m = a.size(0), n = a.size(1), k = std::min(m, n);
  const Array q = b.out(0, a.dtype(), with_matrix(a, m, k)), r = b.out(1, a.dtype(), with_matrix(a, k, n));
  const Array by_q = or_zeros(b.gradient_of(0), q), by_r = or_zeros(b.gradient_of(1), r);
  if (m >= n) return b.give(0, by_full_rank(q, r, by_q, by_r));
  const Array rest = slice(a, 1, m, n), by_rest = slice(by_r, 1, m, n);  // r there is q' a
  const Array first = by_full_rank(q, slice(r, 1, 0, m), by_q + matmul(rest, transpose(by_rest)), slice(by_r, 1, 0, m));
  b.give(0, concat({first, matmul(q, by_rest)}, 1));
}

const Op& qr_op =
    routine_op("qr", Routine::qr, 1, 2, "orthonormal columns and a triangular factor").with_gradient(qr_gradient);

/// What vectors' gradients w say of the spectrum: w over the differences of its values, nothing on the diagonal.
Array over_differences(const Array& w, const Array& values) {
  const Array same = eye(values.size(0), Bool);
  return where(same, 0, w / where(same, 1, as_row(values) - as_column(values)));
}

Array skew(const Array& w) { return w - transpose(w); }

void svd_gradient(Backward& b) {
  const Array a = b.in(0), by_u = b.gradient_of(0), by_s = b.gradient_of(1), by_vt = b.gradient_of(2);
  const int64_t m = a.size(0), n = a.size(1), k = std::min(m, n);
  const Array u = b.out(0, a.dtype(), with_matrix(a, m, k)), s = b.out(1, a.dtype(), with_vector(a, k)),
              vt = b.out(2, a.dtype(), with_matrix(a, k, n));
  Array inner = by_s.is_nothing() ? zeros(with_matrix(a, k, k), a.dtype()) : eye(k, a.dtype()) * as_row(by_s);
  if (!by_u.is_nothing()) {
    inner = inner + over_differences(skew(matmul(transpose(u), by_u)), square(s)) * as_row(s);
  }
  if (!by_vt.is_nothing()) {
    inner = inner + as_column(s) * over_differences(skew(matmul(vt, transpose(by_vt))), square(s));
  }
  Array g = matmul(u, matmul(inner, vt));
  if (!by_u.is_nothing() && m > k) g = g + matmul((by_u - matmul(u, matmul(transpose(u), by_u))) / as_row(s), vt);
  if (!by_vt.is_nothing() && n > k) {
    g = g + matmul(u, (by_vt - matmul(matmul(by_vt, transpose(vt)), vt)) / as_column(s));
  }
  b.give(0, g);
}

const Op& svd_op =
    routine_op("svd", Routine::svd, 1, 3, "left vectors, singular values, right vectors").with_gradient(svd_gradient);

void eigh_gradient(Backward& b) {
  const Array a = b.in(0), by_values = b.gradient_of(0), by_vectors = b.gradient_of(1);
  const int64_t n = a.size(0);
  const Array values = b.out(0, a.dtype(), with_vector(a, n)), v = b.out(1, a.dtype(), a.shape());
  Array inner = by_values.is_nothing() ? zeros_like(v) : eye(n, a.dtype()) * as_row(by_values);
  if (!by_vectors.is_nothing()) inner = inner + over_differences(matmul(transpose(v), by_vectors), values);
  b.give(0, symmetric(matmul(v, matmul(inner, transpose(v)))));
}

const Op& eigh_op = routine_op("eigh", Routine::eigh, 1, 2, "eigenvalues and vectors of a symmetric matrix")
                        .with_gradient(eigh_gradient);

/// Golub and Pereyra 1973.
void pinv_gradient(Backward& b) {
  const Array a = b.in(0), p = b.out(), pt = transpose(p), gt = transpose(b.gradient);

  const Array left = matmul(gt, matmul(p, pt)), right = matmul(matmul(pt, p), gt);
  b.give(0,
         left - matmul(a, matmul(p, left)) + right - matmul(matmul(right, p), a) - matmul(pt, matmul(b.gradient, pt)));
}

const Op& pinv_op = routine_op("pinv", Routine::pseudoinverse, 1, 1, "pseudo-inverse of Moore and Penrose")
                        .with_gradient(pinv_gradient);

Array pseudo_inverse(const Array& a, double rtol) {
  const double eps =
      a.dtype() == Float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double relative = rtol < 0 ? static_cast<double>(std::max(a.size(0), a.size(1))) * eps : rtol;
  return record_one(pinv_op, a, a.dtype(), with_matrix(a, a.size(1), a.size(0)),
                    Attributes::of(CutAttributes{relative}));
}

Array without_ones(const Array& norms) { return reshape(norms, with_dims(norms.shape(), 0, 2, {})); }

[[noreturn]] void refuse_order(double order) {
  refuse(ErrorKind::argument, "matrix_norm", "orders are 1, 2, infinity and their negatives", std::to_string(order),
         "use linalg::vector_norm for a norm of all elements");
}

const bool named[] = {name_function(svdvals, "svdvals"), name_function(eigvalsh, "eigvalsh")};

}  // namespace

QR qr(const Array& a) {
  const Array x = matrix_of(qr_op, a);
  const int64_t k = std::min(x.size(0), x.size(1));
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), with_matrix(x, x.size(0), k)}, {x.dtype(), with_matrix(x, k, x.size(1))}};
  Array results[2];
  record(qr_op, in, forms, {}, results);
  return {beside(a, results[0]), beside(a, results[1])};
}

namespace {

/// On the CPU.
SVD decomposed(const Array& a) {
  const Array x = matrix_of(svd_op, a);
  const int64_t k = std::min(x.size(0), x.size(1));
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), with_matrix(x, x.size(0), k)},
                              {x.dtype(), with_vector(x, k)},
                              {x.dtype(), with_matrix(x, k, x.size(1))}};
  Array results[3];
  record(svd_op, in, forms, {}, results);
  return {results[0], results[1], results[2]};
}

Eigh decomposed_symmetric(const Array& a) {
  const Array x = square_of(eigh_op, a);
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), with_vector(x, x.size(0))}, {x.dtype(), x.shape()}};
  Array results[2];
  record(eigh_op, in, forms, {}, results);
  return {results[0], results[1]};
}

}  // namespace

SVD svd(const Array& a) {
  const SVD found = decomposed(a);
  return {beside(a, found.u), beside(a, found.s), beside(a, found.vt)};
}

Array svdvals(const Array& a) { return beside(a, decomposed(a).s); }

Eigh eigh(const Array& a) {
  const Eigh found = decomposed_symmetric(a);
  return {beside(a, found.values), beside(a, found.vectors)};
}

Array eigvalsh(const Array& a) { return beside(a, decomposed_symmetric(a).values); }

Array pinv(const Array& a, double rtol) { return beside(a, pseudo_inverse(matrix_of(pinv_op, a), rtol)); }

Array lstsq(const Array& a, const Array& b, double rtol) {
  const auto [left, right] = operands_of(pinv_op, a, b);
  return solution_for(b, matmul(pseudo_inverse(left, rtol), right));
}

Array vector_norm(const Array& x, double order, Dims dims) {
  if (order > 0) return norm(x, dims, order);
  if (order == 0) return cast(sum(cast(ne(x, 0), Float32), dims), x.dtype());
  if (std::isinf(order)) return minimum(abs(x), dims);
  return 1 / norm(1 / abs(x), dims, -order);
}

Array vector_norm(const Array& x, double order) { return reshape(vector_norm(reshape(x, {-1}), order, 0), Shape{}); }

Array matrix_norm(const Array& a, MatrixNorm kind) {
  if (kind == MatrixNorm::frobenius) return without_ones(norm(a, {0, 1}));
  const Array values = svdvals(a);
  return reshape(sum(values, 0), with_dims(values.shape(), 0, 1, {}));
}

Array matrix_norm(const Array& a, double order) {
  const double size = std::abs(order);
  if (size != 1 && size != 2 && !std::isinf(size)) refuse_order(order);
  Array candidates;
  if (size == 2) candidates = as_column(svdvals(a));
  else candidates = size == 1 ? transpose(sum(abs(a), 0)) : sum(abs(a), 1);
  return without_ones(order > 0 ? maximum(candidates, 0) : minimum(candidates, 0));
}

}  // namespace rosin::linalg
