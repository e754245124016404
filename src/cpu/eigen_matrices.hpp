// Memory of one call as matrices of Eigen.
#pragma once

#include <Eigen/Core>

#include "cpu/routine.hpp"

namespace rosin::cpu {

template <class T> using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

template <class T> Eigen::Map<const Matrix<T>> matrix(const void* data, int64_t rows, int64_t columns) {
  return {static_cast<const T*>(data), rows, columns};
}
template <class T> Eigen::Map<Matrix<T>> matrix(void* data, int64_t rows, int64_t columns) {
  return {static_cast<T*>(data), rows, columns};
}
template <class T> Eigen::Map<const Matrix<T>> first_matrix(const Problem& p, const Matrices& m) {
  return matrix<T>(m.in[0], p.rows, p.columns);
}

}  // namespace rosin::cpu
