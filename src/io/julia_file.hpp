// Files of Julia (BSON.jl's and JLD2's) behind load and list_file. Read next: julia_file.cpp, flux_names.hpp.
#pragma once

#include <string>
#include <vector>

#include <rosin/io.hpp>

namespace rosin {

enum class JuliaFormat : uint8_t { bson, jld2 };

/// All arrays and numbers with rosin's names, objects that the file shares as one tied array; texts as metadata.
SavedFile read_julia(const std::string& path, JuliaFormat format);
/// The entries as this model's places call them (see entries_for), and the file's texts.
SavedFile read_julia_for(const std::string& path, JuliaFormat format, ModelEdit model);
FileListing list_julia(const std::string& path, JuliaFormat format);

}  // namespace rosin
