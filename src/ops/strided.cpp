// Memory without gaps becomes a leaf in the order in which its dims stand, and a permutation of it; other memory is
// copied element by element.
#include "ops/strided.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include <rosin/borrow.hpp>
#include <rosin/movement.hpp>

#include "graph/node.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

/// Dims as they stand in memory, the contiguous one first; those of size 1, which stand anywhere, come last.
struct MemoryOrder {
  std::array<int, Shape::max_rank> dims{};
  bool has_gaps = false;
  bool is_column_major = false;
};

MemoryOrder order_of(const Shape& shape, std::span<const int64_t> strides) {
  MemoryOrder order;
  const auto begin = order.dims.begin(), end = begin + shape.rank();
  std::iota(begin, end, 0);
  const auto wide_end = std::stable_partition(begin, end, [&](int d) { return shape[d] != 1; });
  const auto stride = [&](int d) { return strides[static_cast<size_t>(d)]; };
  std::stable_sort(begin, wide_end, [&](int a, int b) { return stride(a) < stride(b); });
  order.is_column_major = std::is_sorted(begin, wide_end);
  int64_t expected = 1;
  for (auto d = begin; d != wide_end; expected *= shape[*d++]) order.has_gaps |= stride(*d) != expected;
  return order;
}

/// Element by element in column-major order.
Array gathered(const void* values, DType type, const Shape& shape, std::span<const int64_t> strides) {
  Array made = fresh_leaf(type, shape);
  auto* to = static_cast<unsigned char*>(made.node()->data());
  const auto* from = static_cast<const unsigned char*>(values);
  const size_t bytes = size_of(type);
  std::array<int64_t, Shape::max_rank> at{};
  int64_t place = 0;
  for (int64_t n = made.count(); n > 0; --n, to += bytes) {
    std::memcpy(to, from + place * static_cast<int64_t>(bytes), bytes);
    for (int d = 0; d < shape.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      place += strides[i];
      if (++at[i] < shape[d]) break;
      place -= at[i] * strides[i];
      at[i] = 0;
    }
  }
  return made;
}

}  // namespace

Array strided_array(const void* values, DType type, const Shape& shape, std::span<const int64_t> strides,
                    MemoryOwner owner) {
  if (strides.size() != static_cast<size_t>(shape.rank())) {
    refuse(ErrorKind::shape, "borrow", "every dim needs a stride",
           std::to_string(strides.size()) + " for the shape " + to_string(shape), "give one for each");
  }
  const MemoryOrder order = order_of(shape, strides);
  if (shape.count() == 0 || order.has_gaps) return gathered(values, type, shape, strides);
  if (order.is_column_major) return borrowed_leaf(values, type, shape, std::move(owner));
  const auto rank = static_cast<size_t>(shape.rank());
  std::array<int64_t, Shape::max_rank> sizes{};
  std::array<int, Shape::max_rank> places{};
  for (size_t k = 0; k < rank; ++k) {
    sizes[k] = shape[order.dims[k]];
    places[static_cast<size_t>(order.dims[k])] = static_cast<int>(k);
  }
  const Shape as_it_stands(std::span<const int64_t>(sizes.data(), rank));
  return permute(borrowed_leaf(values, type, as_it_stands, std::move(owner)),
                 std::span<const int>(places.data(), rank));
}

Array detail::borrow_strided(const void* values, DType type, const Shape& shape, std::span<const int64_t> strides,
                             void* owner, void (*drop)(void*) noexcept) {
  return strided_array(values, type, shape, strides, {owner, drop});
}

void detail::check_rank(const char* op, const Array& x, int most, int least) {
  if (x.rank() >= least && x.rank() <= most) return;
  const std::string rule = "the array must have " + std::string(least == most ? "" : "at most ") +
                           std::to_string(most) + (most == 1 ? " dim" : " dims");
  refuse(ErrorKind::shape, op, rule, to_string(x.shape()), "reshape it, or ask for another number of dims");
}

void detail::check_element_size(const char* op, DType type, size_t bytes) {
  if (size_of(type) == bytes) return;
  refuse(ErrorKind::dtype, op,
         "elements of " + std::string(to_string(type)) + " have " + std::to_string(size_of(type)) + " bytes",
         "elements of " + std::to_string(bytes), "name the type that stands there");
}

int64_t detail::elements_of_row(int64_t row_bytes, size_t element_bytes) {
  const auto bytes = static_cast<int64_t>(element_bytes);
  if (row_bytes % bytes == 0) return row_bytes / bytes;
  refuse(ErrorKind::argument, "borrow_image", "a row must have a whole number of elements",
         std::to_string(row_bytes) + " bytes for elements of " + std::to_string(bytes),
         "copy the picture without its gaps");
}

}  // namespace rosin
