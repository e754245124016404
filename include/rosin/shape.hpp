// Sizes of an array: up to eight dimensions, the first one contiguous (column-major).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <rosin/export.hpp>

namespace rosin {

struct Node;

/// The sizes of an array's dimensions, dim 0 first. A 0-d shape has one element.
class ROSIN_API Shape {
 public:
  static constexpr int max_rank = 8;

  /// A size of any integral type, so that `{v.size(), 2}` is a shape.
  struct Size {
    int64_t value;
    template <std::integral I> constexpr Size(I size) noexcept : value(static_cast<int64_t>(size)) {}
  };

  constexpr Shape() noexcept = default;
  /// Error (shape): more than eight dimensions, a negative size, or more than 2^58 elements (sizes of 0 count as 1).
  Shape(std::initializer_list<Size> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const noexcept { return rank_; }
  /// Size of a dim; negative dims count from the end. Error (shape) when there is no such dim.
  int64_t operator[](int dim) const;
  /// Number of elements.
  int64_t count() const noexcept;

  const int64_t* begin() const noexcept { return sizes_; }
  const int64_t* end() const noexcept { return sizes_ + rank_; }
  bool operator==(const Shape& other) const noexcept;

 private:
  friend struct Node;
  /// Sizes that were checked before; those from `rank` on count for nothing.
  Shape(const int64_t (&sizes)[max_rank], int rank) noexcept : rank_(rank) {
    for (int d = 0; d < max_rank; ++d) sizes_[d] = sizes[d];
  }

  void append(int64_t size);

  int64_t sizes_[max_rank] = {};
  int rank_ = 0;
};

/// As in messages: "(64, 10)", "()" for 0-d.
ROSIN_API std::string to_string(const Shape& shape);

}  // namespace rosin
