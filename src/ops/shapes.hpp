// Small helpers that the families of ops share: shapes with one dim changed, recording of ops with one operand, text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <rosin/array.hpp>
#include <rosin/error.hpp>
#include <rosin/shape.hpp>

#include "graph/record.hpp"

namespace rosin {

inline std::span<const int64_t> sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// `shape` with another size of dim `dim` (not negative).
inline Shape with_size(const Shape& shape, int dim, int64_t size) {
  int64_t sizes[Shape::max_rank];
  for (int d = 0; d < shape.rank(); ++d) sizes[d] = d == dim ? size : shape[d];
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(shape.rank())));
}

/// `shape` with the dims [dim, dim + count) replaced by `sizes`.
Shape with_dims(const Shape& shape, int dim, int count, std::span<const int64_t> sizes);
inline Shape with_dims(const Shape& shape, int dim, int count, std::initializer_list<int64_t> sizes) {
  return with_dims(shape, dim, count, std::span<const int64_t>(sizes.begin(), sizes.size()));
}

/// Functions along a dim take a 0-d array as a vector of one element, whose result is 0-d again: its dims are 0 and -1.
inline bool is_dim_of_one(int dim, const Shape& shape) { return shape.rank() == 0 && (dim == 0 || dim == -1); }

/// An array seen from one dim: everything before it, the dim, everything after it.
struct Fold {
  int64_t inner = 1, size = 1, outer = 1;
};
Fold fold_at(const Shape& shape, int dim);

/// Records an op of one operand.
inline Array record_one(const Op& op, const Array& x, DType type, const Shape& shape,
                        const Attributes& attributes = {}) {
  const Array* in[] = {&x};
  return record(op, in, type, shape, attributes);
}

/// What a pending reshape of this thread was made of, else x itself.
Array unreshaped(const Array& x);

/// `op: rule; got X; cure`.
[[noreturn]] void refuse(ErrorKind kind, std::string_view op, std::string_view rule, const std::string& came,
                         std::string_view cure);

}  // namespace rosin
