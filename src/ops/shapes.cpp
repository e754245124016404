// Helpers of the families of ops; see shapes.hpp.
#include "ops/shapes.hpp"

namespace rosin {

Shape with_dims(const Shape& shape, int dim, int count, std::span<const int64_t> sizes) {
  int64_t all[2 * Shape::max_rank];
  size_t rank = 0;
  for (int d = 0; d < dim; ++d) all[rank++] = shape[d];
  for (const int64_t size : sizes) all[rank++] = size;
  for (int d = dim + count; d < shape.rank(); ++d) all[rank++] = shape[d];
  return Shape(std::span<const int64_t>(all, rank));
}

Fold fold_at(const Shape& shape, int dim) {
  Fold fold;
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t& part = d < dim ? fold.inner : d == dim ? fold.size : fold.outer;
    part *= shape[d];
  }
  return fold;
}

void refuse(ErrorKind kind, std::string_view op, std::string_view rule, const std::string& came,
            std::string_view cure) {
  std::string text(op);
  text += ": ";
  text += rule;
  text += "; got " + came + "; ";
  text += cure;
  throw Error(kind, text);
}

}  // namespace rosin
