// The elements of a tree's arrays, read from its file when they are wanted.
#pragma once

#include <rosin/array.hpp>

#include "base/input_file.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

/// An array, or a number as an array without dims. Errors: shape (more than eight dims), io (a Bool that is neither 0
/// nor 1; compressed data that is damaged).
Array array_of(const JuliaTree& tree, uint32_t value, const InputFile& file);
bool is_array_or_number(const JuliaValue& value) noexcept;

}  // namespace rosin
