// JLD2's files: what the objects of HDF5 mean to Julia. Read next: jld2_values.cpp, hdf5_objects.hpp.
#pragma once

#include "base/input_file.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

/// Error (io): the file breaks the format, or uses what JLD2 does not write.
JuliaTree read_jld2_values(const InputFile& file);

}  // namespace rosin
