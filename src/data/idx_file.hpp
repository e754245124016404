// The idx format as it stands in a file: two zero bytes, a type byte, the number of dimensions, the dimensions as
// big-endian 32-bit numbers, the elements in row-major order. Read next: idx_file.cpp, then image_folder.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rosin {

/// The content of one idx file. `type` is the format's own code: 0x08 unsigned byte, 0x09 signed byte, 0x0B 16-bit,
/// 0x0C 32-bit integer, 0x0D 32-bit, 0x0E 64-bit floating point.
struct IdxFile {
  std::vector<int64_t> dims;  // as in the file: the last one varies fastest
  int type = 0;
  std::vector<uint8_t> bytes;  // the elements in the byte order of this machine
};

/// Reads an idx file; one that begins as a gzip file is unpacked on the way, whatever its name. Every malformed file is
/// an Error of kind io that names it. Memory stays within what the file really holds, whatever its header claims.
IdxFile read_idx_file(const std::string& path);

}  // namespace rosin
