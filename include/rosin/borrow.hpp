// Memory in other orders than column-major as arrays. Read next: array.hpp (Array::borrow, data); dlpack.hpp,
// eigen.hpp, image_memory.hpp, mdspan.hpp, which stand on this.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// The array of this shape whose element (i, j, ...) is values[i * strides[0] + j * strides[1] + ...]. Memory without
/// gaps, in whatever order of dims, is borrowed (see Array::borrow), and dims that do not stand column-major are
/// permuted by what reads the array; of other memory a copy is made at once, and the owner let go. Strides count
/// elements and may be negative or 0. Errors: shape (not one stride for each dim), argument (not aligned).
template <class T, class Owner>
  requires is_element<T>
Array borrow_strided(const T* values, const Shape& shape, std::span<const int64_t> strides, Owner owner);
template <class T, class Owner>
  requires is_element<T>
Array borrow_strided(const T* values, const Shape& shape, std::initializer_list<int64_t> strides, Owner owner) {
  return borrow_strided(values, shape, std::span<const int64_t>(strides.begin(), strides.size()),
                        static_cast<Owner&&>(owner));
}

/// The same for memory in C's order, where the last dim is contiguous: element (i, j) is values[i * columns + j].
template <class T, class Owner>
  requires is_element<T>
Array borrow_row_major(const T* values, const Shape& shape, Owner owner) {
  int64_t strides[Shape::max_rank];
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; stride *= shape[d--]) strides[d] = stride;
  return borrow_strided(values, shape, std::span<const int64_t>(strides, static_cast<size_t>(shape.rank())),
                        static_cast<Owner&&>(owner));
}

namespace detail {

ROSIN_API Array borrow_strided(const void* values, DType type, const Shape& shape, std::span<const int64_t> strides,
                               void* owner, void (*drop)(void*) noexcept);
/// Error (shape): x has fewer or more dims.
ROSIN_API void check_rank(const char* op, const Array& x, int most, int least = 0);
/// Error (dtype): elements of a type do not have this size.
ROSIN_API void check_element_size(const char* op, DType type, size_t bytes);
/// Elements from one row of a picture to the next. Error (argument): not a whole number.
ROSIN_API int64_t elements_of_row(int64_t row_bytes, size_t element_bytes);

/// An owner of an object on the heap, whose place must not change.
template <class T> class Kept {
 public:
  explicit Kept(T* object) noexcept : object_(object) {}
  Kept(Kept&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Kept& operator=(Kept&&) = delete;
  ~Kept() { delete object_; }

 private:
  T* object_;
};

}  // namespace detail

template <class T, class Owner>
  requires is_element<T>
Array borrow_strided(const T* values, const Shape& shape, std::span<const int64_t> strides, Owner owner) {
  return detail::borrow_strided(values, dtype_of<T>, shape, strides, new Owner(static_cast<Owner&&>(owner)),
                                [](void* kept) noexcept { delete static_cast<Owner*>(kept); });
}

}  // namespace rosin
