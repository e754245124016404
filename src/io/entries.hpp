// Entries of safetensors files for who writes and reads such files by other means than save and load.
// Read next: save_load.cpp.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.hpp"

namespace rosin {

/// The arrays of entries, tied ones once, and their texts. Errors as save.
std::vector<OutgoingArray> arrays_of_entries(std::span<const SaveEntry> entries);
std::vector<std::pair<std::string, std::string>> texts_of_entries(std::span<const SaveEntry> entries);

/// What load does with a file that was read already, `path`. Errors as load; nothing is changed then.
void load_entries(const SavedFile& file, const std::string& path, std::span<const LoadEntry> entries);

}  // namespace rosin
