// files.hpp on POSIX: what it takes to replace a file. A file that is being written is held by its lock (flock), which
// ends with the process.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "platform/files.hpp"
#include "platform/posix.hpp"

namespace rosin::platform {
namespace {

/// Whether nobody holds the file any more that was opened under this name.
bool is_abandoned(const OpenFile& file, const std::string& name) {
  if (uninterrupted([&] { return flock(descriptor(file), LOCK_EX | LOCK_NB); }) != 0) return false;
  struct stat opened {
  }, there{};
  // Between the opening and the lock it may have been finished: then it has its final name.
  return fstat(descriptor(file), &opened) == 0 && S_ISREG(opened.st_mode) && lstat(name.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

/// Where a link leads.
Refusal follow_link(const std::string& name, OldFile& old, struct stat& info) {
  char* real = realpath(name.c_str(), nullptr);
  if (!real) {
    const std::error_code error = errno == ENOENT ? std::error_code() : last_error();
    return {"it is a symbolic link that leads nowhere; remove or mend it", error};
  }
  old.name = real;
  std::free(real);
  if (stat(old.name.c_str(), &info) != 0) return {"the file that it leads to cannot be looked at", last_error()};
  return {};
}

}  // namespace

Refusal look_at_old_file(const std::string& name, OldFile& old) {
  struct stat info {};
  old.name = name;
  if (lstat(name.c_str(), &info) != 0) {
    if (errno == ENAMETOOLONG) return {"its name is too long", last_error()};
    return {};
  }
  old.is_there = true;
  if (S_ISLNK(info.st_mode)) {
    if (const Refusal refusal = follow_link(name, old, info)) return refusal;
  }
  if (S_ISDIR(info.st_mode)) return {"it is a directory"};
  if (!S_ISREG(info.st_mode)) return {"it is not a regular file"};
  // The file is replaced through its directory, so its own permission must be asked for; root's may do all, and a file
  // without any write bit is meant to stay.
  if ((info.st_mode & 0222) == 0 || faccessat(AT_FDCWD, old.name.c_str(), W_OK, AT_EACCESS) != 0) {
    return {"it is read-only; allow writing or choose another name"};
  }
  old.owner = info.st_uid;
  old.group = info.st_gid;
  old.mode = info.st_mode & 07777;
  return {};
}

std::error_code make_file(const std::string& name, NewFileAccess access, OpenFile& file) {
  const mode_t mode = access == NewFileAccess::owner_only ? 0600 : 0666;
  if (const std::error_code error = open_file(name, O_WRONLY | O_CREAT | O_EXCL, mode, file)) return error;
  // (Where the file system has no locks, nobody else gets one either, and nothing is cleaned up.)
  uninterrupted([&] { return flock(descriptor(file), LOCK_EX); });
  struct stat made {};
  if (fstat(descriptor(file), &made) == 0 && made.st_nlink > 0) return {};
  file.close();  // who cleans up came before our lock
  return std::make_error_code(std::errc::file_exists);
}

Refusal take_over_rights(const OpenFile& file, const OldFile& old) {
  struct stat made {};
  if (fstat(descriptor(file), &made) != 0) return {"the new file cannot be looked at", last_error()};
  const bool same_owner = made.st_uid == old.owner && made.st_gid == old.group;
  if (!same_owner && uninterrupted([&] { return fchown(descriptor(file), old.owner, old.group); }) != 0) {
    return {"its owner and group cannot be kept; remove it first or choose another name", last_error()};
  }
  if (uninterrupted([&] { return fchmod(descriptor(file), static_cast<mode_t>(old.mode)); }) != 0) {
    return {"its permissions cannot be kept", last_error()};
  }
  return {};
}

std::error_code write_all(const OpenFile& file, const void* bytes, size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = uninterrupted([&] { return ::write(descriptor(file), next, count); });
    if (written < 0) return last_error();
    next += written;
    count -= static_cast<size_t>(written);
  }
  return {};
}

std::error_code flush(const OpenFile& file) {
  return uninterrupted([&] { return fsync(descriptor(file)); }) == 0 ? std::error_code() : last_error();
}

std::error_code rename_open_file(const OpenFile&, const std::string& from, const std::string& to) {
  const bool done = uninterrupted([&] { return rename(from.c_str(), to.c_str()); }) == 0;
  return done ? std::error_code() : last_error();
}

/// Renames are durable only once their directory is. File systems that cannot flush a directory say EINVAL.
std::error_code flush_folder(const std::string& folder) {
  OpenFile opened;
  if (const std::error_code error = open_file(folder, O_RDONLY | O_DIRECTORY, 0, opened)) {
    return error == std::errc::permission_denied ? std::error_code() : error;
  }
  const std::error_code error = flush(opened);
  return error == std::errc::invalid_argument ? std::error_code() : error;
}

void remove_if_abandoned(const std::string& name) {
  OpenFile file;
  if (open_file(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0, file)) return;
  if (is_abandoned(file, name)) unlink(name.c_str());
}

void remove_file(const std::string& name) noexcept { unlink(name.c_str()); }

}  // namespace rosin::platform
