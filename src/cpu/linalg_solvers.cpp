// Cholesky, LU and what is solved by them. Read first: routine.hpp.
#if ROSIN_HAVE_EIGEN

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <cmath>

#include "cpu/eigen_matrices.hpp"

namespace rosin::cpu {
namespace {

template <class T> void cholesky(const Problem& p, const Matrices& m) {
  const Eigen::LLT<Matrix<T>> factor(first_matrix<T>(p, m));
  if (factor.info() != Eigen::Success) {
    throw Error(ErrorKind::numeric,
                "cholesky: the matrix must be positive definite; got one that is not; add a "
                "multiple of the identity, or use eigh");
  }
  matrix<T>(m.out[0], p.rows, p.rows) = factor.matrixL();
}

template <unsigned mode, class A, class X> void solve_triangle(const A& a, bool transposed, bool unit, X& x) {
  constexpr unsigned other = mode == Eigen::Upper ? Eigen::Lower : Eigen::Upper;
  if (transposed && unit) a.transpose().template triangularView<other | Eigen::UnitDiag>().solveInPlace(x);
  else if (transposed) a.transpose().template triangularView<other>().solveInPlace(x);
  else if (unit) a.template triangularView<mode | Eigen::UnitDiag>().solveInPlace(x);
  else a.template triangularView<mode>().solveInPlace(x);
}

template <class T> void triangular(const Problem& p, const Matrices& m) {
  const auto how = p.attributes.as<TriangularAttributes>();
  if (p.columns_of_b == 0) return;
  const auto a = first_matrix<T>(p, m);
  auto x = matrix<T>(m.out[0], p.rows, p.columns_of_b);
  x = matrix<T>(m.in[1], p.rows, p.columns_of_b);
  if (how.upper) solve_triangle<Eigen::Upper>(a, how.transposed != 0, how.unit != 0, x);
  else solve_triangle<Eigen::Lower>(a, how.transposed != 0, how.unit != 0, x);
}

/// Error (numeric): a pivot is 0.
template <class T> Eigen::PartialPivLU<Matrix<T>> invertible(const Problem& p, const Matrices& m) {
  Eigen::PartialPivLU<Matrix<T>> factors(first_matrix<T>(p, m));
  if ((factors.matrixLU().diagonal().array() == T{0}).any()) refuse_singular(p);
  return factors;
}

template <class T> void solve(const Problem& p, const Matrices& m) {
  const auto factors = invertible<T>(p, m);
  if (p.columns_of_b == 0) return;
  const auto b = matrix<T>(m.in[1], p.rows, p.columns_of_b);
  auto x = matrix<T>(m.out[0], p.rows, p.columns_of_b);
  if (p.attributes.as<TriangularAttributes>().transposed) x = factors.transpose().solve(b);
  else x = factors.solve(b);
}

template <class T> void inverse(const Problem& p, const Matrices& m) {
  matrix<T>(m.out[0], p.rows, p.rows) = invertible<T>(p, m).inverse();
}

/// In place, row by row exchanged as `order` says.
template <class T> void factor_rectangle(Matrix<T>& a, int32_t* order) {
  for (int64_t k = 0; k < std::min(a.rows(), a.cols()); ++k) {
    int64_t pivot = 0;
    a.col(k).tail(a.rows() - k).cwiseAbs().maxCoeff(&pivot);
    if (pivot != 0) {
      a.row(k).swap(a.row(k + pivot));
      std::swap(order[k], order[k + pivot]);
    }
    const int64_t below = a.rows() - k - 1, right = a.cols() - k - 1;
    if (a(k, k) != T{0}) a.col(k).tail(below) /= a(k, k);
    a.bottomRightCorner(below, right).noalias() -= a.col(k).tail(below) * a.row(k).tail(right);
  }
}

template <class T> void lu(const Problem& p, const Matrices& m) {
  std::vector<int32_t> order(static_cast<size_t>(p.rows));
  Matrix<T> factors = first_matrix<T>(p, m);
  if (p.rows == p.columns) {
    const Eigen::PartialPivLU<Matrix<T>> square(factors);
    factors = square.matrixLU();
    const auto& places = square.permutationP().indices();
    for (int32_t i = 0; i < p.rows; ++i) order[static_cast<size_t>(places[i])] = i;
  } else {
    for (int32_t i = 0; i < p.rows; ++i) order[static_cast<size_t>(i)] = i;
    factor_rectangle(factors, order.data());
  }
  if (m.out[0]) matrix<T>(m.out[0], p.rows, p.columns) = factors;
  if (m.out[1]) std::copy(order.begin(), order.end(), static_cast<int32_t*>(m.out[1]));
}

template <class T> void determinant(const Problem& p, const Matrices& m) {
  *static_cast<T*>(m.out[0]) = Eigen::PartialPivLU<Matrix<T>>(first_matrix<T>(p, m)).determinant();
}

template <class T> void logarithm(const Problem& p, const Matrices& m) {
  const Eigen::PartialPivLU<Matrix<T>> factors(first_matrix<T>(p, m));
  T sign = static_cast<T>(factors.permutationP().determinant()), sum = 0;
  for (int64_t i = 0; i < p.rows; ++i) {
    const T pivot = factors.matrixLU()(i, i);
    sign *= pivot > 0 ? T{1} : pivot < 0 ? T{-1} : pivot;  // 0, or NaN
    sum += std::log(std::abs(pivot));
  }
  if (m.out[0]) *static_cast<T*>(m.out[0]) = sign;
  if (m.out[1]) *static_cast<T*>(m.out[1]) = sum;
}

template <class T> Work solver(Routine routine) {
  switch (routine) {
    case Routine::cholesky: return cholesky<T>;
    case Routine::triangular: return triangular<T>;
    case Routine::solve: return solve<T>;
    case Routine::inverse: return inverse<T>;
    case Routine::lu: return lu<T>;
    case Routine::determinant: return determinant<T>;
    case Routine::logarithm: return logarithm<T>;
    default: return nullptr;
  }
}

}  // namespace

Work solver_of(Routine routine, DType type) {
  return type == DType::Float64 ? solver<double>(routine) : solver<float>(routine);
}

}  // namespace rosin::cpu

#endif
