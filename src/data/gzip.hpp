// Unpacking of gzip data that is already in memory. Without zlib at build time it only says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rosin {

/// True when the bytes begin as a gzip file does.
bool looks_like_gzip(const std::vector<uint8_t>& bytes);

/// Unpacks all members of a gzip file. Stops early once more than `limit` bytes are out, so that a small file cannot
/// fill the memory. `path` names the file in messages. Damaged or truncated data is an Error of kind io.
std::vector<uint8_t> unpack_gzip(const std::vector<uint8_t>& packed, std::size_t limit, const std::string& path);

}  // namespace rosin
