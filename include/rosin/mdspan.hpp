// std::mdspan and arrays, without a copy. Reading from one needs only its members; giving one out needs a standard
// library that has it (C++23: __cpp_lib_mdspan). Read next: borrow.hpp.
#pragma once

#include <version>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

#include <rosin/borrow.hpp>

namespace rosin {

/// What std::mdspan with a strided layout has.
template <class M>
concept MdspanLike = requires(const M& m) {
  typename M::element_type;
  requires is_element<std::remove_const_t<typename M::element_type>>;
  { m.data_handle() } -> std::convertible_to<const typename M::element_type*>;
  { m.extent(0) } -> std::convertible_to<int64_t>;
  { m.stride(0) } -> std::convertible_to<int64_t>;
  { M::rank() } -> std::convertible_to<size_t>;
};

/// The memory of an mdspan as an array with the same indices; `owner` keeps it alive, as in Array::borrow. A layout
/// with gaps is copied (see borrow_strided). At most eight dims.
template <MdspanLike M, class Owner> Array from_mdspan(const M& span, Owner owner) {
  constexpr size_t rank = M::rank();
  static_assert(rank <= Shape::max_rank, "rosin: an array has at most eight dims");
  std::array<int64_t, rank> sizes{}, strides{};
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = static_cast<int64_t>(span.extent(d));
    strides[d] = static_cast<int64_t>(span.stride(d));
  }
  const std::remove_const_t<typename M::element_type>* values = span.data_handle();
  return borrow_strided(values, Shape(std::span<const int64_t>(sizes)), std::span<const int64_t>(strides),
                        static_cast<Owner&&>(owner));
}

#ifdef __cpp_lib_mdspan
/// The elements of x: `as_mdspan<float, 2>(x)[i, j]`. Valid as long as x.data() is. Errors: as data(); shape (another
/// number of dims).
template <class T, size_t rank>
std::mdspan<const T, std::dextents<int64_t, rank>, std::layout_left> as_mdspan(const Array& x) {
  detail::check_rank("as_mdspan", x, static_cast<int>(rank), static_cast<int>(rank));
  std::array<int64_t, rank> sizes{};
  for (size_t d = 0; d < rank; ++d) sizes[d] = x.size(static_cast<int>(d));
  return {x.template data<T>().data(), std::dextents<int64_t, rank>(sizes)};
}
template <class T, size_t rank>
std::mdspan<const T, std::dextents<int64_t, rank>, std::layout_left> as_mdspan(Array&& x) = delete;
#endif

}  // namespace rosin
