// files.hpp on POSIX: opening, reading, mapping, folders. Read next: replacing_posix.cpp.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/files.hpp"
#include "platform/posix.hpp"

namespace rosin::platform {

void OpenFile::close() noexcept {
  if (handle_ != none) ::close(static_cast<int>(handle_));
  handle_ = none;
}

std::error_code open_to_read(const std::string& name, OpenFile& file) {
  return open_file(name, O_RDONLY | O_NONBLOCK, 0, file);
}

std::error_code facts_of(const OpenFile& file, FileFacts& facts) {
  struct stat info {};
  if (fstat(descriptor(file), &info) != 0) return last_error();
  facts.kind = S_ISREG(info.st_mode) ? FileKind::regular : S_ISDIR(info.st_mode) ? FileKind::folder : FileKind::other;
  facts.size = static_cast<uint64_t>(info.st_size);
  facts.is_private = info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  return {};
}

std::error_code read_at(const OpenFile& file, uint64_t offset, void* target, size_t count, size_t& got) {
  const ssize_t read =
      uninterrupted([&] { return pread(descriptor(file), target, count, static_cast<off_t>(offset)); });
  got = read < 0 ? 0 : static_cast<size_t>(read);
  return read < 0 ? last_error() : std::error_code();
}

std::error_code map_to_read(const OpenFile& file, uint64_t size, const unsigned char*& data) {
  void* const mapped = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, descriptor(file), 0);
  if (mapped == MAP_FAILED) return last_error();
  data = static_cast<const unsigned char*>(mapped);
  return {};
}

void unmap(const unsigned char* data, uint64_t size) noexcept {
  munmap(const_cast<unsigned char*>(data), static_cast<size_t>(size));
}

std::string trouble_with_private_folder(const std::string& name) {
  struct stat info {};
  if (lstat(name.c_str(), &info) != 0) return last_error().message();
  if (!S_ISDIR(info.st_mode)) return "it is no folder";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  return (info.st_mode & 077) == 0 ? std::string() : "others have rights to it (chmod 700 takes them away)";
}

std::error_code make_folder_for_user(const std::string& name) {
  return mkdir(name.c_str(), 0700) != 0 && errno != EEXIST ? last_error() : std::error_code();
}

std::error_code try_to_hold_folder(const std::string& name, OpenFile& lock) {
  if (const std::error_code error = open_file(name, O_RDONLY | O_DIRECTORY, 0, lock)) return error;
  if (uninterrupted([&] { return flock(descriptor(lock), LOCK_EX | LOCK_NB); }) == 0) return {};
  const std::error_code error = last_error();
  lock.close();
  return error;
}

}  // namespace rosin::platform
