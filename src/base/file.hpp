// Atomic writing, the one way in which rosin writes files: a reader sees the old file or the complete new one, never a
// part. Every failure is an Error of kind io that names the path and says why. Read next: file.cpp; input_file.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/files.hpp"

namespace rosin {

/// Whose a written file is.
enum class FileAccess : uint8_t {
  usual,       // a file that is replaced keeps its owner and permissions, a new one has what the umask gives
  owner_only,  // ours, and closed to all others, whatever stood under that name; a link is replaced, not followed
};

/// A file under construction. Bytes go to a temporary file in the directory of `path`; `commit` makes it appear under
/// its name. Destroyed without commit, it leaves nothing behind; what a killed process left in that directory goes with
/// the next file written there. A symbolic link is followed; one that leads nowhere, a target that is no regular file,
/// a read-only one, and one whose owner cannot be kept are refused. For one thread at a time.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path, FileAccess access = FileAccess::usual);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(const void* bytes, std::size_t count);

  /// Flushes the file to the disk, renames it, and flushes the directory. Nothing may be written afterwards.
  void commit();

 private:
  void replace_politely();
  void create_temporary(platform::NewFileAccess access);
  void check_open() const;
  void discard() noexcept;
  [[noreturn]] void fail(const platform::Refusal& refusal);

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // where the links lead
  std::string temporary_;  // empty: no temporary file exists
  platform::OpenFile file_;
};

/// Writes `text` (any bytes) as the whole content of `path`, all or nothing.
void write_file_atomically(const std::string& path, std::string_view text, FileAccess access = FileAccess::usual);

/// Why a folder is no place for files that nobody else may write; empty: it is one.
using platform::trouble_with_private_folder;
/// The same; one that is not there is made so, with the folders above it as the umask has them.
std::string make_private_folder(const std::string& path);

}  // namespace rosin
