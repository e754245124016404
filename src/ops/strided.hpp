// Arrays from memory with strides. Read next: strided.cpp; <rosin/borrow.hpp> is what users see of it.
#pragma once

#include <span>

#include <rosin/array.hpp>

#include "graph/leaf.hpp"

namespace rosin {

/// See borrow_strided in <rosin/borrow.hpp>.
Array strided_array(const void* values, DType type, const Shape& shape, std::span<const int64_t> strides,
                    MemoryOwner owner);

}  // namespace rosin
