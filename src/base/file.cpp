// The system calls behind file.hpp (POSIX). Read next: nothing, this is a leaf.
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <rosin/error.hpp>

#include "base/system_call.hpp"

namespace rosin {

namespace {

namespace fs = std::filesystem;

// Short, so that the longest name that the system takes has a temporary file too.
constexpr std::string_view temporary_prefix = ".rosin-unfinished-";

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_name_of_temporary(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return false;
  name.remove_prefix(temporary_prefix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

// Whoever writes a temporary file holds its lock, which ends with the process.
bool is_abandoned(int descriptor, const char* path) {
  if (uninterrupted([&] { return flock(descriptor, LOCK_EX | LOCK_NB); }) != 0) return false;
  struct stat opened {
  }, there{};
  // Between the opening and the lock it may have been finished: then it has its final name.
  return fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode) && lstat(path, &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

// What killed processes left. What cannot be opened, locked or removed stays.
void remove_abandoned(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!is_name_of_temporary(entry->path().filename().native())) continue;
    const char* path = entry->path().c_str();
    const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int descriptor = uninterrupted([&] { return open(path, flags); });
    if (descriptor < 0) continue;
    if (is_abandoned(descriptor, path)) unlink(path);
    close(descriptor);
  }
}

// Renames are durable only once their directory is. File systems that cannot flush a directory say EINVAL.
int flush_directory(const std::string& directory) {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const int descriptor = uninterrupted([&] { return open(directory.c_str(), flags); });
  if (descriptor < 0) return errno == EACCES ? 0 : errno;
  const int code = uninterrupted([&] { return fsync(descriptor); }) == 0 || errno == EINVAL ? 0 : errno;
  close(descriptor);
  return code;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, FileAccess access) : path_(path), target_(path) {
  if (path.empty()) fail("the path is empty", 0);
  if (access == FileAccess::owner_only) create_temporary(0600);
  else replace_politely();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::replace_politely() {
  struct stat old {};
  if (lstat(path_.c_str(), &old) != 0) {
    if (errno == ENAMETOOLONG) fail("its name is too long", errno);
    return create_temporary(0666);
  }
  if (S_ISLNK(old.st_mode)) {
    char* real = realpath(path_.c_str(), nullptr);
    if (!real) fail("it is a symbolic link that leads nowhere; remove or mend it", errno == ENOENT ? 0 : errno);
    target_ = real;
    std::free(real);
    if (stat(target_.c_str(), &old) != 0) fail("the file that it leads to cannot be looked at", errno);
  }
  if (S_ISDIR(old.st_mode)) fail("it is a directory", 0);
  if (!S_ISREG(old.st_mode)) fail("it is not a regular file", 0);
  // The file is replaced through its directory, so its own permission must be asked for; root's may do all, and a file
  // without any write bit is meant to stay.
  if ((old.st_mode & 0222) == 0 || faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) {
    fail("it is read-only; allow writing or choose another name", 0);
  }
  create_temporary(0600);
  keep_owner_and_permissions(old);
}

void AtomicFile::create_temporary(unsigned mode) {
  static std::atomic<uint64_t> serial{0};
  const std::string directory = directory_of(target_);
  remove_abandoned(directory);
  const std::string stem = directory + "/" + std::string(temporary_prefix) + std::to_string(getpid()) + "-";
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  do {
    temporary_ = stem + std::to_string(serial++);
    descriptor_ = uninterrupted([&] { return open(temporary_.c_str(), flags, mode); });
    if (descriptor_ >= 0 && hold_temporary()) return;
    // Another file system's process may have the same number; and who cleans up may have come before our lock.
  } while (descriptor_ >= 0 || errno == EEXIST);
  const int code = errno;
  temporary_.clear();
  fail("cannot create a file in its directory", code);
}

/// Takes the lock that says that the file is still being written. (Where the file system has no locks, nobody else gets
/// one either, and nothing is cleaned up.)
bool AtomicFile::hold_temporary() {
  uninterrupted([&] { return flock(descriptor_, LOCK_EX); });
  struct stat made {};
  if (fstat(descriptor_, &made) == 0 && made.st_nlink > 0) return true;
  close(descriptor_);
  return false;
}

void AtomicFile::keep_owner_and_permissions(const struct stat& old) {
  struct stat made {};
  if (fstat(descriptor_, &made) != 0) fail("the new file cannot be looked at", errno);
  const bool same_owner = made.st_uid == old.st_uid && made.st_gid == old.st_gid;
  if (!same_owner && uninterrupted([&] { return fchown(descriptor_, old.st_uid, old.st_gid); }) != 0) {
    fail("its owner and group cannot be kept; remove it first or choose another name", errno);
  }
  if (uninterrupted([&] { return fchmod(descriptor_, old.st_mode & 07777); }) != 0) {
    fail("its permissions cannot be kept", errno);
  }
}

void AtomicFile::check_open() const {
  if (descriptor_ < 0) throw Error(ErrorKind::internal, "write: '" + path_ + "' is already complete");
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  check_open();
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor_, next, count); });
    if (written < 0) fail("the system refused to store the data", errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  check_open();
  if (uninterrupted([&] { return fsync(descriptor_); }) != 0) fail("the data did not reach the disk", errno);
  // Under its lock until it has its name, so that nobody takes it for abandoned.
  if (uninterrupted([&] { return rename(temporary_.c_str(), target_.c_str()); }) != 0) {
    fail("the finished file could not take its name", errno);
  }
  temporary_.clear();
  discard();
  const int code = flush_directory(directory_of(target_));
  if (code != 0) fail("its directory did not reach the disk", code);
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

// Also called by the constructor, whose destructor would not run: the temporary goes here.
void AtomicFile::fail(const char* what, int code) {
  discard();
  const std::string reason = code == 0 ? std::string() : ": " + system_text(code);
  throw Error(ErrorKind::io, "write: cannot write '" + path_ + "'; " + what + reason);
}

void write_file_atomically(const std::string& path, std::string_view text, FileAccess access) {
  AtomicFile file(path, access);
  file.write(text.data(), text.size());
  file.commit();
}

std::string trouble_with_private_folder(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return system_text(errno);
  if (!S_ISDIR(info.st_mode)) return "it is no folder";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  return (info.st_mode & 077) == 0 ? std::string() : "others have rights to it (chmod 700 takes them away)";
}

std::string make_private_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);  // what fails here fails again below
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_text(errno);
  return trouble_with_private_folder(path);
}

}  // namespace rosin
