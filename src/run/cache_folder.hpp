// The folder in which compiled kernels and notes about plug-ins are kept from one process to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rosin {

/// ROSIN_CACHE_DIR (see cache_dir_setting), else rosin in XDG_CACHE_HOME, else .cache/rosin in HOME; nothing where none
/// is an absolute path. It may not exist, and others may
/// write there: what is kept stands in private folders in it (see base/file.hpp).
std::optional<std::string> cache_folder();

/// 64 bits that follow from the bytes of a text.
uint64_t hash_text(std::string_view text);
/// Sixteen digits.
std::string hex_text(uint64_t value);

}  // namespace rosin
