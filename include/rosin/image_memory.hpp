// Pictures as other libraries keep them: row by row, the channels of a pixel beside one another (HWC), rows perhaps
// with a gap behind them. cv::Mat is one such class; no header of OpenCV is included. Read next: borrow.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <rosin/borrow.hpp>

namespace rosin {

/// The picture as an array (width, height, channels), as convolutions take it once a dim for the batch is added:
/// unsqueeze(x, -1). Rows begin `row_bytes` after one another. Without gaps the memory is borrowed (see Array::borrow)
/// and read in this order by what follows; with gaps it is copied. Errors (argument): row_bytes is no multiple of the
/// size of T; not aligned.
template <class T, class Owner>
  requires is_element<T>
Array borrow_image(const T* pixels, int64_t width, int64_t height, int64_t channels, int64_t row_bytes, Owner owner) {
  const int64_t row = detail::elements_of_row(row_bytes, sizeof(T));
  return borrow_strided(pixels, {width, height, channels}, {channels, row, 1}, static_cast<Owner&&>(owner));
}

/// What cv::Mat has.
template <class M>
concept MatLike = std::copy_constructible<M> && requires(const M& m) {
  { m.data } -> std::convertible_to<const unsigned char*>;
  { m.rows } -> std::convertible_to<int64_t>;
  { m.cols } -> std::convertible_to<int64_t>;
  { m.channels() } -> std::convertible_to<int64_t>;
  { m.elemSize1() } -> std::convertible_to<size_t>;
  { static_cast<size_t>(m.step) };
};

/// A cv::Mat of two dims, whose copies share the pixels: `from_mat<uint8_t>(picture)`. Error (dtype): its elements have
/// another size than T.
template <class T, MatLike M>
  requires is_element<T>
Array from_mat(const M& mat) {
  detail::check_element_size("from_mat", dtype_of<T>, mat.elemSize1());
  return borrow_image(static_cast<const T*>(static_cast<const void*>(mat.data)), mat.cols, mat.rows, mat.channels(),
                      static_cast<int64_t>(static_cast<size_t>(mat.step)), M(mat));
}

}  // namespace rosin
