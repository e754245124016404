// Whole-file reading and atomic writing: a reader sees the old file or the complete new one, never a part.
// Every failure is an Error of kind io that names the path and says why. Read next: file.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rosin {

/// A file under construction. Bytes go to a temporary file in the directory of `path`; `commit` makes it appear under
/// its name. Destroyed without commit, it leaves nothing behind. A symbolic link is followed, the permissions of a file
/// that is replaced are kept, and a target that is no regular file is refused. For one thread at a time.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(const void* bytes, std::size_t count);

  /// Flushes the file to the disk, renames it, and flushes the directory. Nothing may be written afterwards.
  void commit();

 private:
  void create_temporary();
  void discard() noexcept;
  [[noreturn]] void fail(const char* what, int code);

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // where the links lead
  std::string temporary_;  // empty: no temporary file exists
  int descriptor_ = -1;
};

/// Writes `text` (any bytes) as the whole content of `path`, all or nothing.
void write_file_atomically(const std::string& path, std::string_view text);

/// The whole content of a regular file.
std::vector<uint8_t> read_whole_file(const std::string& path);

}  // namespace rosin
