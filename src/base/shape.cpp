// Shape and the names of element types.
#include <rosin/shape.hpp>

#include <algorithm>

#include <rosin/dtype.hpp>
#include <rosin/error.hpp>

#include "base/sizes.hpp"

namespace rosin {

const char* to_string(DType type) noexcept {
  constexpr const char* names[dtype_count] = {"Bool",     "UInt8",   "Int8",    "Int16",      "UInt16",
                                              "Int32",    "UInt32",  "Int64",   "UInt64",     "Float16",
                                              "BFloat16", "Float32", "Float64", "ComplexF32", "ComplexF64"};
  return names[static_cast<int>(type)];
}

namespace {

void check_rank(size_t rank) {
  if (rank <= Shape::max_rank) return;
  throw Error(ErrorKind::shape,
              "shape: an array has at most 8 dimensions; got " + std::to_string(rank) + "; reshape or split the data");
}

}  // namespace

Shape::Shape(std::initializer_list<Size> sizes) {
  check_rank(sizes.size());
  for (const Size& size : sizes) append(size.value);
  if (!can_be_sizes(sizes_, rank_)) refuse_sizes("shape", sizes_, rank_);
}

Shape::Shape(std::span<const int64_t> sizes) {
  check_rank(sizes.size());
  for (int64_t size : sizes) append(size);
  if (!can_be_sizes(sizes_, rank_)) refuse_sizes("shape", sizes_, rank_);
}

void Shape::append(int64_t size) {
  if (size < 0) {
    throw Error(ErrorKind::shape, "shape: a size cannot be negative; got " + std::to_string(size));
  }
  sizes_[rank_++] = size;
}

int64_t Shape::operator[](int dim) const {
  const int at = dim < 0 ? dim + rank_ : dim;
  if (at < 0 || at >= rank_) {
    throw Error(ErrorKind::shape, "shape: dim " + std::to_string(dim) + " does not exist; the shape is " +
                                      to_string(*this) + "; dims count from 0");
  }
  return sizes_[at];
}

int64_t Shape::count() const noexcept {
  int64_t count = 1;
  for (int64_t size : *this) count *= size;
  return count;
}

bool Shape::operator==(const Shape& other) const noexcept {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + ")";
}

}  // namespace rosin
