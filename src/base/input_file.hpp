// A file read at stated places, so that one array at a time is in memory, or as a whole. Every failure is an Error of
// kind io that names the file. Read next: input_file.cpp; file.hpp (writing).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/files.hpp"

namespace rosin {

/// An open regular file. Reading rather than mapping, unless that is asked for: a file that shrinks meanwhile is an
/// error, not a signal; opening never waits. `op` begins the messages.
class InputFile {
 public:
  explicit InputFile(const std::string& path, const char* op = "read");
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }
  /// Whether the file belongs to the effective user and nobody else has any right to it.
  bool is_private() const noexcept { return private_; }
  /// For mapping it (mapped_file.hpp).
  const platform::OpenFile& opened() const noexcept { return file_; }
  /// `count` bytes from `offset` on.
  void read(uint64_t offset, void* target, size_t count) const;

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  const char* op_;
  platform::OpenFile file_;
  uint64_t size_ = 0;
  bool private_ = false;
};

/// The whole content of a regular file. Error (io) also where it has more bytes than `most`; then none is read.
std::vector<uint8_t> read_whole_file(const std::string& path, uint64_t most = UINT64_MAX);

}  // namespace rosin
