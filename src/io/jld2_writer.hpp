// Writing the state form to files that JLD2.jl loads. Read next: jld2_writer.cpp, flux_state.hpp.
#pragma once

#include <string>

#include "io/flux_state.hpp"

namespace rosin {

/// `root`: its children are the file's entries. Errors: argument (names that HDF5 cannot have, more parts than its
/// types can), dtype (BFloat16), io.
void write_jld2(const std::string& path, StateNode& root);

}  // namespace rosin
