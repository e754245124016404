// Compiled kernels kept on disk from one process to the next. A file is found by the hash of its key and counts only if
// the whole key is in it and its checksum holds, so foreign, old and damaged files are passed over and written anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rosin {

/// The bytes stored under this key, or nothing.
std::optional<std::vector<uint8_t>> find_kernel_file(std::string_view key);
/// Stores bytes; drops the files used longest ago where all take more than the bound. Where the folder cannot be
/// written it warns once (`kernel-cache`), and kernels are compiled in each process.
void store_kernel_file(std::string_view key, const void* bytes, size_t count);
/// Keeps a text that did not compile, and says where; empty where that is not possible.
std::string keep_failed_source(std::string_view text);

}  // namespace rosin
