// Factorisations of large matrices cut in halves, again and again: nearly all of their work is then products, which the
// engines compute, on all threads and with the same bits on each processor. Halves that are small are Eigen's.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpu/eigen_matrices.hpp"

namespace rosin::cpu {

/// Up to so many rows a matrix is not cut.
inline constexpr int64_t most_uncut = 64;

/// A part of a matrix.
template <class T> using Block = Eigen::Ref<Matrix<T>, 0, Eigen::OuterStride<>>;

/// Where a part stands, for products of any type.
struct ProductPart {
  void* data;
  int64_t rows, columns, stride;  // elements from one column to the next
  bool transposed = false;        // rows and columns are those of the transposed part
};
template <class T> ProductPart product_part(Block<T> x, bool transposed = false) {
  return transposed ? ProductPart{x.data(), x.cols(), x.rows(), x.outerStride(), true}
                    : ProductPart{x.data(), x.rows(), x.cols(), x.outerStride()};
}
/// room = a*b; room: contiguous memory for the result.
void multiply(DType type, const ProductPart& a, const ProductPart& b, void* room);

/// c -= a*b, either of which may be taken transposed.
template <class T> void subtract_product(Block<T> c, const ProductPart& a, const ProductPart& b) {
  Matrix<T> product(c.rows(), c.cols());
  multiply(dtype_of<T>, a, b, product.data());
  c -= product;
}

/// Of n rows so many are the first half.
inline int64_t half_of(int64_t n) { return std::max<int64_t>(n / 2 / 32 * 32, std::min<int64_t>(n, 32)); }

/// Which triangle of a matrix is meant, and how it is taken.
struct Triangle {
  bool upper = false, transposed = false, unit = false;
};

template <unsigned mode, class A, class X> void solve_small_triangle(const A& a, const Triangle& how, X& x) {
  constexpr unsigned other = mode == Eigen::Upper ? Eigen::Lower : Eigen::Upper;
  if (how.transposed && how.unit) a.transpose().template triangularView<other | Eigen::UnitDiag>().solveInPlace(x);
  else if (how.transposed) a.transpose().template triangularView<other>().solveInPlace(x);
  else if (how.unit) a.template triangularView<mode | Eigen::UnitDiag>().solveInPlace(x);
  else a.template triangularView<mode>().solveInPlace(x);
}

/// x becomes the y of op(a)*y = x.
template <class T> void solve_triangle(Block<T> a, const Triangle& how, Block<T> x) {
  constexpr int64_t few_columns = 16;  // are read as often as a by Eigen too
  const int64_t n = a.rows();
  if (n <= most_uncut || x.cols() < few_columns) {
    if (how.upper) solve_small_triangle<Eigen::Upper>(a, how, x);
    else solve_small_triangle<Eigen::Lower>(a, how, x);
    return;
  }
  const int64_t first = half_of(n), last = n - first;
  const bool downwards = how.upper == how.transposed;  // op(a) is a lower triangle
  Block<T> corner = how.upper ? Block<T>(a.topRightCorner(first, last)) : Block<T>(a.bottomLeftCorner(last, first));
  Block<T> above = x.topRows(first), below = x.bottomRows(last);
  const auto solve_above = [&] { solve_triangle<T>(a.topLeftCorner(first, first), how, above); };
  const auto solve_below = [&] { solve_triangle<T>(a.bottomRightCorner(last, last), how, below); };
  if (downwards) {
    solve_above();
    subtract_product<T>(below, product_part<T>(corner, how.transposed), product_part<T>(above));
    solve_below();
  } else {
    solve_below();
    subtract_product<T>(above, product_part<T>(corner, how.transposed), product_part<T>(below));
    solve_above();
  }
}

/// x becomes the y of y*l^T = x, l a lower triangle.
template <class T> void solve_from_the_right(Block<T> l, Block<T> x) {
  const int64_t n = l.rows();
  if (n <= most_uncut) {
    l.transpose().template triangularView<Eigen::Upper>().template solveInPlace<Eigen::OnTheRight>(x);
    return;
  }
  const int64_t first = half_of(n), last = n - first;
  Block<T> left = x.leftCols(first), right = x.rightCols(last);
  solve_from_the_right<T>(l.topLeftCorner(first, first), left);
  subtract_product<T>(right, product_part<T>(left), product_part<T>(l.bottomLeftCorner(last, first), true));
  solve_from_the_right<T>(l.bottomRightCorner(last, last), right);
}

/// The lower triangle of c -= a*a^T; what stands above it is not kept.
template <class T> void subtract_square(Block<T> c, Block<T> a) {
  const int64_t n = c.rows();
  if (n <= most_uncut) return subtract_product<T>(c, product_part<T>(a), product_part<T>(a, true));
  const int64_t first = half_of(n), last = n - first;
  Block<T> above = a.topRows(first), below = a.bottomRows(last);
  subtract_square<T>(c.topLeftCorner(first, first), above);
  subtract_product<T>(c.bottomLeftCorner(last, first), product_part<T>(below), product_part<T>(above, true));
  subtract_square<T>(c.bottomRightCorner(last, last), below);
}

/// The lower triangle becomes the Cholesky factor; false where the matrix is not positive definite.
template <class T> bool factor_cholesky(Block<T> a) {
  const int64_t n = a.rows();
  if (n <= most_uncut) return Eigen::LLT<Block<T>>(a).info() == Eigen::Success;
  const int64_t first = half_of(n), last = n - first;
  Block<T> corner = a.topLeftCorner(first, first), below = a.bottomLeftCorner(last, first),
           rest = a.bottomRightCorner(last, last);
  if (!factor_cholesky<T>(corner)) return false;
  solve_from_the_right<T>(corner, below);
  subtract_square<T>(rest, below);
  return factor_cholesky<T>(rest);
}

/// A matrix, its rows exchanged, as a unit lower and an upper triangle in its place.
template <class T> class Factors {
 public:
  explicit Factors(Matrix<T> a) : both_(std::move(a)), order_(static_cast<size_t>(both_.rows())) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int32_t>(i);
    if (both_.rows() == both_.cols() && both_.rows() <= most_uncut) {
      take_small();
      return;
    }
    pivots_.resize(static_cast<size_t>(std::min(both_.rows(), both_.cols())));
    factor(0, both_.cols());
    for (size_t k = 0; k < pivots_.size(); ++k) {
      if (pivots_[k] == static_cast<int64_t>(k)) continue;
      std::swap(order_[k], order_[static_cast<size_t>(pivots_[k])]);
      sign_ = -sign_;
    }
  }

  const Matrix<T>& both() const { return both_; }
  /// Row i of the factors is row order()[i] of the matrix.
  const std::vector<int32_t>& order() const { return order_; }
  /// Of the exchanges: 1 or -1.
  T sign() const { return sign_; }

  /// x becomes the y of op(a)*y = x, of a square matrix.
  void solve(bool transposed, Block<T> x) {
    if (!transposed) {
      permute(x, false);
      solve_triangle<T>(both_, {.unit = true}, x);
      solve_triangle<T>(both_, {.upper = true}, x);
    } else {
      solve_triangle<T>(both_, {.upper = true, .transposed = true}, x);
      solve_triangle<T>(both_, {.transposed = true, .unit = true}, x);
      permute(x, true);
    }
  }

 private:
  void take_small() {
    const Eigen::PartialPivLU<Matrix<T>> small(both_);
    both_ = small.matrixLU();
    const auto& places = small.permutationP().indices();
    for (int32_t i = 0; i < places.size(); ++i) order_[static_cast<size_t>(places[i])] = i;
    sign_ = static_cast<T>(small.permutationP().determinant());
  }

  /// Columns from `left` on, so many, of the rows from `left` on. Rows are exchanged in these columns alone.
  void factor(int64_t left, int64_t columns) {
    constexpr int64_t few = 16;
    const int64_t rows = both_.rows() - left, pivots = std::min(rows, columns);
    const bool is_small = static_cast<int64_t>(pivots_.size()) <= most_uncut;
    if (pivots <= few || is_small) return factor_column_by_column(left, columns, pivots);
    const int64_t first = columns > pivots ? pivots : (pivots + 1) / 2, last = columns - first, next = left + first;
    factor(left, first);
    if (last == 0) return;
    exchange(left, next, next, last);
    solve_triangle<T>(both_.block(left, left, first, first), {.unit = true}, both_.block(left, next, first, last));
    if (rows == first) return;
    Block<T> below = both_.block(next, left, rows - first, first), above = both_.block(left, next, first, last);
    subtract_product<T>(both_.block(next, next, rows - first, last), product_part<T>(below), product_part<T>(above));
    factor(next, last);
    exchange(next, next + std::min(rows - first, last), left, first);
  }

  void factor_column_by_column(int64_t left, int64_t columns, int64_t pivots) {
    for (int64_t k = 0; k < pivots; ++k) {
      const int64_t at = left + k, below = both_.rows() - at - 1, right = columns - k - 1;
      int64_t pivot = 0;
      both_.col(at).tail(below + 1).cwiseAbs().maxCoeff(&pivot);
      pivots_[static_cast<size_t>(at)] = at + pivot;
      if (pivot != 0) both_.row(at).segment(left, columns).swap(both_.row(at + pivot).segment(left, columns));
      if (both_(at, at) != T{0}) both_.col(at).tail(below) /= both_(at, at);
      both_.block(at + 1, at + 1, below, right).noalias() -=
          both_.col(at).tail(below) * both_.row(at).segment(at + 1, right);
    }
  }

  /// What the pivots of some rows exchange, in other columns: one after the other, as each lies together.
  void exchange(int64_t first, int64_t end, int64_t left, int64_t columns) {
    for (int64_t c = left; c < left + columns; ++c) {
      T* const column = both_.col(c).data();
      for (int64_t k = first; k < end; ++k) std::swap(column[k], column[pivots_[static_cast<size_t>(k)]]);
    }
  }

  void permute(Block<T> x, bool back) const {
    const Matrix<T> before = x;
    for (int64_t c = 0; c < x.cols(); ++c) {
      for (int64_t i = 0; i < x.rows(); ++i) {
        const int64_t from = order_[static_cast<size_t>(i)];
        if (back) x(from, c) = before(i, c);
        else x(i, c) = before(from, c);
      }
    }
  }

  Matrix<T> both_;
  std::vector<int32_t> order_;
  std::vector<int64_t> pivots_;  // row k was exchanged with this one
  T sign_ = 1;
};

}  // namespace rosin::cpu
