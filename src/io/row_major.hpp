// Copies between our order of elements (column-major) and that of files (row-major), also with dims rearranged, and
// between orders of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <rosin/array.hpp>

namespace rosin {

/// The elements of a column-major array of these sizes in row-major order, and back. `width`: bytes of an element,
/// a power of two up to 16.
void to_row_major(void* target, const void* source, const Shape& shape, size_t width);
void from_row_major(void* target, const void* source, const Shape& shape, size_t width);

/// Element by element from where they stand in `source`, `strides` (in elements) apart, one for each dim.
void from_strides(void* target, const void* source, const Shape& shape, std::span<const int64_t> strides, size_t width);

/// `count` numbers of `width` bytes in the other order of bytes.
void swap_bytes(void* numbers, uint64_t count, size_t width);

/// Row-major elements of these sizes into memory with these strides (in elements).
void place_row_major(void* target, std::span<const int64_t> strides, const void* source, std::span<const int64_t> sizes,
                     size_t width);

/// An array whose dim d is dim order[d] of x (all values there), reversed where flipped[d].
Array rearranged(const Array& x, std::span<const int> order, std::span<const bool> flipped);

/// x with its values in host memory: a number becomes an array of one element.
Array with_values(const Array& x);

}  // namespace rosin
