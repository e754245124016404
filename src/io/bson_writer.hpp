// Writing the state form to files that BSON.jl loads. Read next: bson_writer.cpp, flux_state.hpp.
#pragma once

#include <string>

#include "io/flux_state.hpp"

namespace rosin {

/// `root`: its children are the file's entries. Errors: argument (2 GiB or more, which BSON cannot have), io.
void write_bson(const std::string& path, StateNode& root);

}  // namespace rosin
