// The system calls behind file.hpp (POSIX). Read next: nothing, this is a leaf.
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <rosin/error.hpp>

namespace rosin {

namespace {

std::string error_text(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_reading(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::io, "read: cannot read '" + path + "'; " + why);
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a symbolic link leads; any other path stays as it is.
std::string resolve_link(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string resolved = real;
  std::free(real);
  return resolved;
}

// Renames are durable only once their directory is. File systems that cannot flush a directory say EINVAL.
int flush_directory(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES ? 0 : errno;
  const int code = fsync(descriptor) == 0 || errno == EINVAL ? 0 : errno;
  close(descriptor);
  return code;
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
  const int descriptor;
};

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_link(path)) {
  if (path.empty()) fail("the path is empty", 0);
  struct stat info {};
  const bool exists = stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail("it is a directory", 0);
  if (exists && !S_ISREG(info.st_mode)) fail("it is not a regular file", 0);
  create_temporary();
  if (exists && fchmod(descriptor_, info.st_mode & 07777) != 0) fail("cannot keep its permissions", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::create_temporary() {
  static std::atomic<uint64_t> serial{0};
  for (;;) {
    std::string name = target_ + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = std::move(name);
      return;
    }
    // A crashed process with the same number may have left its file behind.
    if (errno != EEXIST && errno != EINTR) fail("cannot create a file in its directory", errno);
  }
}

void AtomicFile::write(const void* bytes, std::size_t count) {
  if (descriptor_ < 0) throw Error(ErrorKind::internal, "write: '" + path_ + "' is already complete");
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("the system refused to store the data", errno);
    next += written;
    count -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  if (descriptor_ < 0) throw Error(ErrorKind::internal, "write: '" + path_ + "' is already complete");
  if (fsync(descriptor_) != 0) fail("the data did not reach the disk", errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0) fail("the data did not reach the disk", errno);
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("the finished file could not take its name", errno);
  temporary_.clear();
  const int code = flush_directory(directory_of(target_));
  if (code != 0) fail("its directory did not reach the disk", code);
}

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

// Also called by the constructor, whose destructor would not run: the temporary goes here.
void AtomicFile::fail(const char* what, int code) {
  discard();
  const std::string reason = code == 0 ? std::string() : ": " + error_text(code);
  throw Error(ErrorKind::io, "write: cannot write '" + path_ + "'; " + what + reason);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

std::vector<uint8_t> read_whole_file(const std::string& path) {
  const OpenFile file(path);
  if (file.descriptor < 0) fail_reading(path, error_text(errno));
  struct stat info {};
  if (fstat(file.descriptor, &info) != 0) fail_reading(path, error_text(errno));
  if (S_ISDIR(info.st_mode)) fail_reading(path, "it is a directory");
  if (!S_ISREG(info.st_mode)) fail_reading(path, "it is not a regular file");
  std::vector<uint8_t> bytes(static_cast<std::size_t>(info.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = read(file.descriptor, bytes.data() + have, bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_reading(path, error_text(errno));
    if (count == 0) fail_reading(path, "it shrank while it was read");
    have += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace rosin
