// Matrices and vectors of Eigen as arrays and arrays as maps of Eigen, without a copy and without including Eigen: any
// class with the same members will do. Read next: borrow.hpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <rosin/borrow.hpp>

namespace rosin {

/// What Eigen::Matrix, Array, Map and Ref have.
template <class M>
concept EigenLike = requires(const M& m) {
  typename M::Scalar;
  requires is_element<typename M::Scalar>;
  { m.data() } -> std::convertible_to<const typename M::Scalar*>;
  { m.rows() } -> std::convertible_to<int64_t>;
  { m.innerStride() } -> std::convertible_to<int64_t>;
  { m.outerStride() } -> std::convertible_to<int64_t>;
  { bool(M::IsRowMajor) };
  { bool(M::IsVectorAtCompileTime) };
};

/// The memory of a matrix as an array (rows, cols), that of a vector as (n); what its strides leave out is copied
/// without. `owner` keeps the memory alive, as in Array::borrow.
template <EigenLike M, class Owner> Array from_eigen(const M& matrix, Owner owner) {
  if constexpr (M::IsVectorAtCompileTime) {
    const int64_t strides[] = {static_cast<int64_t>(matrix.innerStride())};
    return borrow_strided(matrix.data(), {static_cast<int64_t>(matrix.rows() * matrix.cols())},
                          std::span<const int64_t>(strides), std::move(owner));
  } else {
    const int64_t inner = matrix.innerStride(), outer = matrix.outerStride();
    const int64_t strides[] = {M::IsRowMajor ? outer : inner, M::IsRowMajor ? inner : outer};
    return borrow_strided(matrix.data(), {static_cast<int64_t>(matrix.rows()), static_cast<int64_t>(matrix.cols())},
                          std::span<const int64_t>(strides), std::move(owner));
  }
}

/// The same for a matrix that owns its memory and is moved in (or copied): `from_eigen(std::move(matrix))`. A Map or
/// Ref owns nothing and needs an owner.
template <EigenLike M>
  requires std::same_as<M, typename M::PlainObject>
Array from_eigen(M matrix) {
  auto* kept = new M(std::move(matrix));
  return from_eigen(*kept, detail::Kept<M>(kept));
}

/// The elements of x as a map: `as_eigen<Eigen::Map<const Eigen::MatrixXf>>(x)`, of an array of one dim
/// `as_eigen<Eigen::Map<const Eigen::VectorXf>>(x)`. Valid as long as x.data() is. Errors: as data(); shape (more than
/// two dims, or two for a vector).
template <class Map> Map as_eigen(const Array& x) {
  static_assert(Map::IsVectorAtCompileTime || !Map::IsRowMajor,
                "rosin: arrays are column-major; map them as such, or map transpose(x)");
  constexpr int most = Map::IsVectorAtCompileTime ? 1 : 2;
  detail::check_rank("as_eigen", x, most);
  const int64_t rows = x.rank() > 0 ? x.size(0) : 1, cols = x.rank() > 1 ? x.size(1) : 1;
  using Index = decltype(std::declval<const Map&>().rows());
  const auto* values = x.template data<typename Map::Scalar>().data();
  if constexpr (Map::IsVectorAtCompileTime) return Map(values, static_cast<Index>(rows));
  else return Map(values, static_cast<Index>(rows), static_cast<Index>(cols));
}
template <class Map> Map as_eigen(Array&& x) = delete;

}  // namespace rosin
