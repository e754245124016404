// QR, singular values, eigenvalues and what is made of them. Read first: routine.hpp.
#if ROSIN_HAVE_EIGEN

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "cpu/eigen_matrices.hpp"

namespace rosin::cpu {
namespace {

template <class T> void qr(const Problem& p, const Matrices& m) {
  const int64_t least = p.least();
  const Eigen::HouseholderQR<Matrix<T>> factors(first_matrix<T>(p, m));
  if (m.out[0]) {
    matrix<T>(m.out[0], p.rows, least) = factors.householderQ() * Matrix<T>::Identity(p.rows, least);
  }
  if (!m.out[1]) return;
  auto r = matrix<T>(m.out[1], least, p.columns);
  r.setZero();
  r.template triangularView<Eigen::Upper>() = factors.matrixQR().topRows(least);
}

[[noreturn]] void refuse_values(const Problem& p) {
  throw Error(ErrorKind::numeric, std::string(p.op) +
                                      ": the elements must be finite; got a matrix for which no "
                                      "values were found; look for NaN and Inf in it");
}

template <class T>
Eigen::BDCSVD<Matrix<T>> spectrum(const Problem& p, const Eigen::Ref<const Matrix<T>>& a, bool vectors) {
  if (!a.allFinite()) refuse_values(p);
  Eigen::BDCSVD<Matrix<T>> found(a, vectors ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0);
  if (found.info() != Eigen::Success) refuse_values(p);
  return found;
}

template <class T> void svd(const Problem& p, const Matrices& m) {
  const int64_t least = p.least();
  const auto found = spectrum<T>(p, first_matrix<T>(p, m), m.out[0] || m.out[2]);
  if (m.out[0]) matrix<T>(m.out[0], p.rows, least) = found.matrixU();
  if (m.out[1]) matrix<T>(m.out[1], least, 1) = found.singularValues();
  if (m.out[2]) matrix<T>(m.out[2], least, p.columns) = found.matrixV().transpose();
}

template <class T> void eigh(const Problem& p, const Matrices& m) {
  const auto a = first_matrix<T>(p, m);
  if (!a.allFinite()) refuse_values(p);
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> found(a,
                                                       m.out[1] ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (found.info() != Eigen::Success) refuse_values(p);
  if (m.out[0]) matrix<T>(m.out[0], p.rows, 1) = found.eigenvalues();
  if (m.out[1]) matrix<T>(m.out[1], p.rows, p.rows) = found.eigenvectors();
}

/// The inverse of an upper triangle, without a look at its values.
template <class T> Matrix<T> inverse_of_triangle(const Matrix<T>& r) {
  const int64_t n = r.rows();
  const Problem problem{.op = "pinv",
                        .routine = Routine::triangular,
                        .attributes = Attributes::of(TriangularAttributes{.upper = 1}),
                        .rows = n,
                        .columns = n,
                        .columns_of_b = n};
  const Matrix<T> identity = Matrix<T>::Identity(n, n);
  Matrix<T> inverse(n, n);
  solver_of(Routine::triangular, dtype_of<T>)(problem, {{r.data(), identity.data()}, {inverse.data()}});
  return inverse;
}

/// Of an upper triangle. No singular value is larger than the norm of the elements, and none smaller than one by the
/// norm of the inverse's: where these say that all count, it is the inverse.
template <class T> Matrix<T> pseudoinverse_of_triangle(const Problem& p, const Matrix<T>& r) {
  const T relative = static_cast<T>(p.attributes.as<CutAttributes>().relative);
  Matrix<T> inverse = inverse_of_triangle(r);
  if (relative * r.norm() * inverse.norm() < T{1}) return inverse;
  const auto found = spectrum<T>(p, r, true);
  const auto& values = found.singularValues();
  const auto inverses = (values.array() > relative * values[0]).select(values.array().inverse(), T{0}).matrix().eval();
  matrix<T>(inverse.data(), r.rows(), r.rows()) = found.matrixV() * inverses.asDiagonal() * found.matrixU().transpose();
  return inverse;
}

/// Of a matrix with as many rows as columns or more, transposed: its triangular factor has its singular values.
template <class T> Matrix<T> turned_pseudoinverse(const Problem& p, const Eigen::Ref<const Matrix<T>>& a) {
  const int64_t n = a.cols();
  const Eigen::HouseholderQR<Matrix<T>> factors(a);
  const Matrix<T> r = factors.matrixQR().topRows(n).template triangularView<Eigen::Upper>();
  Matrix<T> result = Matrix<T>::Zero(a.rows(), n);
  result.topRows(n) = pseudoinverse_of_triangle<T>(p, r).transpose();
  result.applyOnTheLeft(factors.householderQ());
  return result;
}

template <class T> void pseudoinverse(const Problem& p, const Matrices& m) {
  const auto a = first_matrix<T>(p, m);
  auto out = matrix<T>(m.out[0], p.columns, p.rows);
  if (p.rows >= p.columns) out = turned_pseudoinverse<T>(p, a).transpose();
  else out = turned_pseudoinverse<T>(p, Matrix<T>(a.transpose()));
}

/// det(a) * inv(a) transposed, right for singular matrices too: each singular value gives the product of the others.
template <class T> void cofactors(const Problem& p, const Matrices& m) {
  const auto found = spectrum<T>(p, first_matrix<T>(p, m), true);
  const int64_t n = p.rows;
  const auto& values = found.singularValues();
  Eigen::Matrix<T, Eigen::Dynamic, 1> others(n);
  for (int64_t i = 0; i < n; ++i) others[i] = values.head(i).prod() * values.tail(n - i - 1).prod();
  const T sign = found.matrixU().determinant() * found.matrixV().determinant() < 0 ? T{-1} : T{1};
  others *= sign;
  matrix<T>(m.out[0], n, n) = found.matrixU() * others.asDiagonal() * found.matrixV().transpose();
}

template <class T> Work spectrum_work(Routine routine) {
  switch (routine) {
    case Routine::qr: return qr<T>;
    case Routine::svd: return svd<T>;
    case Routine::eigh: return eigh<T>;
    case Routine::pseudoinverse: return pseudoinverse<T>;
    case Routine::cofactors: return cofactors<T>;
    default: return nullptr;
  }
}

}  // namespace

Work spectrum_of(Routine routine, DType type) {
  return type == DType::Float64 ? spectrum_work<double>(routine) : spectrum_work<float>(routine);
}

}  // namespace rosin::cpu

#endif
