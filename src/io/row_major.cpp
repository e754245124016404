// One strided copy serves both directions.
#include "io/row_major.hpp"

#include <algorithm>
#include <cstdint>

#include "base/strided_copy.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

/// Rank at least 2; the first and the last dim are those of the blocks.
void copy_strided(void* target, const void* source, const StridedCopy& copy, size_t width) {
  BlockCopy(copy, width, 0, copy.rank - 1).run(target, source);
}

void column_strides(int64_t* strides, std::span<const int64_t> sizes) {
  int64_t stride = 1;
  for (int64_t size : sizes) {
    *strides++ = stride;
    stride *= size;
  }
}

void row_strides(int64_t* strides, std::span<const int64_t> sizes) {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= sizes[d];
  }
}

/// A copy of these sizes, with missing dims of size 1 up to rank 2.
StridedCopy copy_of(std::span<const int64_t> sizes) {
  StridedCopy copy;
  copy.rank = std::max(2, static_cast<int>(sizes.size()));
  std::fill(copy.sizes, copy.sizes + 2, 1);
  std::copy(sizes.begin(), sizes.end(), copy.sizes);
  return copy;
}
StridedCopy copy_of_shape(const Shape& shape) { return copy_of({shape.begin(), static_cast<size_t>(shape.rank())}); }

std::span<const int64_t> sizes_of(const StridedCopy& copy) { return {copy.sizes, static_cast<size_t>(copy.rank)}; }

}  // namespace

void to_row_major(void* target, const void* source, const Shape& shape, size_t width) {
  if (shape.count() == 0) return;
  StridedCopy copy = copy_of_shape(shape);
  row_strides(copy.target, sizes_of(copy));
  column_strides(copy.source, sizes_of(copy));
  copy_strided(target, source, copy, width);
}

void from_row_major(void* target, const void* source, const Shape& shape, size_t width) {
  int64_t strides[Shape::max_rank] = {};
  row_strides(strides, {shape.begin(), shape.end()});
  from_strides(target, source, shape, {strides, static_cast<size_t>(shape.rank())}, width);
}

void from_strides(void* target, const void* source, const Shape& shape, std::span<const int64_t> strides,
                  size_t width) {
  if (shape.count() == 0) return;
  StridedCopy copy = copy_of_shape(shape);
  column_strides(copy.target, sizes_of(copy));
  std::copy(strides.begin(), strides.end(), copy.source);
  copy_strided(target, source, copy, width);
}

void swap_bytes(void* numbers, uint64_t count, size_t width) {
  auto* next = static_cast<unsigned char*>(numbers);
  for (uint64_t i = 0; i < count; ++i, next += width) std::reverse(next, next + width);
}

void place_row_major(void* target, std::span<const int64_t> strides, const void* source, std::span<const int64_t> sizes,
                     size_t width) {
  StridedCopy copy = copy_of(sizes);
  std::copy(strides.begin(), strides.end(), copy.target);
  row_strides(copy.source, sizes_of(copy));
  copy_strided(target, source, copy, width);
}

Array rearranged(const Array& x, std::span<const int> order, std::span<const bool> flipped) {
  const Array values = with_values(x);
  const Shape from = x.shape();
  int64_t sizes[Shape::max_rank] = {}, strides[Shape::max_rank] = {};
  column_strides(strides, {from.begin(), order.size()});
  for (size_t d = 0; d < order.size(); ++d) sizes[d] = from[order[d]];
  const Shape to(std::span<const int64_t>(sizes, order.size()));
  Array made = fresh_leaf(x.dtype(), to);
  if (to.count() == 0) return made;
  StridedCopy copy = copy_of_shape(to);
  column_strides(copy.target, sizes_of(copy));
  const size_t width = size_of(x.dtype());
  const auto* source = static_cast<const unsigned char*>(values.node()->data());
  for (size_t d = 0; d < order.size(); ++d) {
    copy.source[d] = strides[order[d]];
    if (!flipped[d]) continue;
    source += static_cast<size_t>((sizes[d] - 1) * copy.source[d]) * width;
    copy.source[d] = -copy.source[d];
  }
  copy_strided(made.node()->data(), source, copy, width);
  return made;
}

Array with_values(const Array& x) {
  if (!is_scalar(*x.node())) return on_cpu(x);
  Array made = fresh_leaf(x.dtype(), Shape());
  write_number(*x.node(), made.node()->data(), x.dtype());
  return made;
}

}  // namespace rosin
