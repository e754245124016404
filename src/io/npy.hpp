// NumPy's files behind load, save and list_file. Read next: npy.cpp, npy_header.hpp, zip.hpp.
#pragma once

#include <string>
#include <vector>

#include <rosin/io.hpp>

#include "io/safetensors.hpp"

namespace rosin {

SavedFile read_npz(const std::string& path);
FileListing list_npz(const std::string& path);
/// `compress`: deflated. Error (argument): a name is used twice or empty; (dtype): NumPy lacks a type.
void write_npz(const std::string& path, const std::vector<OutgoingArray>& arrays, bool compress);

/// A .npy file as one that holds one array, called as the file ("x" for x.npy).
SavedFile read_npy(const std::string& path, const ReadRequest& request);
FileListing list_npy(const std::string& path);
void write_npy(const std::string& path, const std::vector<OutgoingArray>& arrays);

}  // namespace rosin
