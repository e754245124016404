// Zip archives: the central directory, entries that are stored or deflated, sizes beyond 4 GiB (zip64).
// Read next: zip.cpp, npy.cpp (the user).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/input_file.hpp"

namespace rosin {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t checksum = 0;
  uint64_t place = 0;   // of its bytes in the file
  uint64_t packed = 0;  // bytes in the file
  uint64_t bytes = 0;   // bytes unpacked
};

/// Error (io): damaged, encrypted, in several parts, compressed by another method, entries that overlap, or that
/// unpack to more than deflate can.
std::vector<ZipEntry> read_zip(const InputFile& file);
/// Reads an entry and checks its checksum.
std::vector<unsigned char> unpack_entry(const InputFile& file, const ZipEntry& entry);

/// The checksum of zip files; `before`: of what precedes.
uint32_t crc32_of(const void* bytes, uint64_t count, uint32_t before = 0) noexcept;

/// Writes entries one after another. `limit`: sizes and places from it on are written as 64-bit numbers.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file, uint64_t limit = 0xffffffff) : file_(file), limit_(limit) {}
  /// An entry of two parts, stored or deflated; the latter needs memory for what it packs to.
  void add(const std::string& name, std::string_view head, const void* bytes, uint64_t count, bool deflated = false);
  /// The central directory.
  void finish();

 private:
  void write(const std::string& bytes);
  AtomicFile& file_;
  uint64_t limit_;
  uint64_t at_ = 0;
  std::string directory_;
  uint64_t count_ = 0;
};

}  // namespace rosin
