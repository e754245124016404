// The inner layer of BSON.jl's files: what tagged documents mean. Nothing is executed, and no type is looked up.
// Read next: bson_values.cpp, julia_tree.hpp (the result).
#pragma once

#include "base/input_file.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

/// Error (io): the file breaks the format.
JuliaTree read_bson_values(const InputFile& file);

}  // namespace rosin
