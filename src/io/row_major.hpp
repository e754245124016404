// Copies between our order of elements (column-major) and that of files (row-major), also with dims rearranged.
#pragma once

#include <cstddef>
#include <span>

#include <rosin/array.hpp>

namespace rosin {

/// The elements of a column-major array of these sizes in row-major order, and back. `width`: bytes of an element,
/// a power of two up to 16.
void to_row_major(void* target, const void* source, const Shape& shape, size_t width);
void from_row_major(void* target, const void* source, const Shape& shape, size_t width);

/// An array whose dim d is dim order[d] of x (all values there), reversed where flipped[d].
Array rearranged(const Array& x, std::span<const int> order, std::span<const bool> flipped);

/// x with its values in host memory: a number becomes an array of one element.
Array with_values(const Array& x);

}  // namespace rosin
