// A file read at stated places, so that one array at a time is in memory. Read next: safetensors.cpp, its user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rosin {

/// An open regular file. Errors are of kind io and name it. Reading rather than mapping: a file that shrinks meanwhile
/// is an error, not a signal.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return size_; }
  /// `count` bytes from `offset` on.
  void read(uint64_t offset, void* target, size_t count) const;

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace rosin
