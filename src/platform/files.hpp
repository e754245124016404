// Files as the system has them: read at places, mapped, replaced as a whole. Names are UTF-8. A call that fails says
// what the system said, as an error that is true. Read next: base/input_file.hpp, base/file.hpp, which stand on this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace rosin::platform {

/// An open file or folder, closed with the object.
class OpenFile {
 public:
  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept : handle_(std::exchange(other.handle_, none)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OpenFile() { close(); }
  explicit operator bool() const noexcept { return handle_ != none; }
  void close() noexcept;

  /// A file descriptor of POSIX, a HANDLE of Windows.
  intptr_t handle() const noexcept { return handle_; }
  /// The owner of a handle that was just opened.
  explicit OpenFile(intptr_t handle) noexcept : handle_(handle) {}

 private:
  static constexpr intptr_t none = -1;  // INVALID_HANDLE_VALUE too
  intptr_t handle_ = none;
};

// --- reading ---

enum class FileKind : uint8_t { regular, folder, other };

struct FileFacts {
  FileKind kind = FileKind::other;
  uint64_t size = 0;
  /// Whether the file belongs to the effective user and nobody else has any right to it; false where that is unknown.
  bool is_private = false;
};

/// Opens a file; never waits for who else would open it. It may be replaced or removed meanwhile.
std::error_code open_to_read(const std::string& name, OpenFile& file);
std::error_code facts_of(const OpenFile& file, FileFacts& facts);
/// Reads at most `count` bytes from `offset` on; `got` is 0 at the end of the file.
std::error_code read_at(const OpenFile& file, uint64_t offset, void* target, size_t count, size_t& got);
/// The file as memory that cannot be written, of `size` bytes, at least 1; it may be closed then. It is a private
/// mapping: no page of it goes back to the file.
std::error_code map_to_read(const OpenFile& file, uint64_t size, const unsigned char*& data);
void unmap(const unsigned char* data, uint64_t size) noexcept;

// --- replacing a file ---

/// A file that stands where another shall.
struct OldFile {
  bool is_there = false;
  std::string name;    // where links lead
  uint32_t owner = 0;  // this and the next two are POSIX's
  uint32_t group = 0;
  uint32_t mode = 0;
};

/// Why a file cannot be written: our words, and where the system has a say, its own.
struct Refusal {
  const char* rule = nullptr;
  std::error_code error = {};
  explicit operator bool() const noexcept { return rule != nullptr; }
};

/// Looks at what stands under a name. Refused is all but nothing and a regular file that may be written.
Refusal look_at_old_file(const std::string& name, OldFile& old);

/// Who may use a file that is made: all that the umask (the folder) allows; the user alone.
enum class NewFileAccess : uint8_t { usual, owner_only };

/// Makes a file that is not there yet and holds it: until it is closed, `remove_if_abandoned` leaves it alone.
/// std::errc::file_exists where there is one, or it was taken for an abandoned one before it was held.
std::error_code make_file(const std::string& name, NewFileAccess access, OpenFile& file);
/// Gives the new file the owner (but on Windows) and the permissions of the old one.
Refusal take_over_rights(const OpenFile& file, const OldFile& old);
std::error_code write_all(const OpenFile& file, const void* bytes, size_t count);
/// Returns when the disk has what was written.
std::error_code flush(const OpenFile& file);
/// Gives the open file another name; what stood under that is gone.
std::error_code rename_open_file(const OpenFile& file, const std::string& from, const std::string& to);
/// Returns when the disk has the names in a folder, as far as the file system can say so.
std::error_code flush_folder(const std::string& folder);
/// Removes a file of make_file whose process has ended; not one that somebody holds, or that cannot be removed.
void remove_if_abandoned(const std::string& name);

/// Removes a file where that can be done.
void remove_file(const std::string& name) noexcept;

// --- folders ---

/// Why a folder is no place for files that nobody else may write: it must be a folder itself (no link to one), belong
/// to the effective user and be closed to all others (mode 0700). Empty: it is one.
std::string trouble_with_private_folder(const std::string& name);
/// Makes a folder that only the user may enter; one that is there stays as it is.
std::error_code make_folder_for_user(const std::string& name);

/// Tries to hold a folder for one writer until `lock` is closed; it leaves nothing behind.
/// std::errc::operation_would_block: another has it.
std::error_code try_to_hold_folder(const std::string& name, OpenFile& lock);

}  // namespace rosin::platform
