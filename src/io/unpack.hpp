// Compressed parts of files: deflate as zip, HDF5 and zlib have it. Without zlib at build time it only says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

/// Unpacks exactly `bytes` bytes from `packed` bytes of the file. `zlib`: with zlib's header, else bare. The packed
/// bytes pass through a small buffer. Error (io): damaged, or of another length.
void unpack_deflate(const InputFile& file, uint64_t place, uint64_t packed, bool zlib, void* target, uint64_t bytes);

/// Two parts one after another as one bare stream of deflate. Error (io): this rosin was built without zlib; (memory):
/// no room for it.
std::vector<unsigned char> pack_deflate(std::string_view head, const void* bytes, uint64_t count);

/// The elements of a compressed array.
void unpack_chunk(const InputFile& file, const JuliaArray& array, void* target);

}  // namespace rosin
