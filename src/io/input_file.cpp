// The system calls behind input_file.hpp (POSIX). Read next: nothing, this is a leaf.
#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <rosin/error.hpp>

namespace rosin {
namespace {

std::string error_text(int code) { return std::generic_category().message(code); }

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail(error_text(errno));
  struct stat info {};
  const bool known = fstat(descriptor_, &info) == 0;
  const std::string why = !known                   ? error_text(errno)
                          : S_ISDIR(info.st_mode)  ? "it is a directory"
                          : !S_ISREG(info.st_mode) ? "it is not a regular file"
                                                   : "";
  if (!why.empty()) {
    close(descriptor_);
    fail(why);
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(uint64_t offset, void* target, size_t count) const {
  auto* next = static_cast<unsigned char*>(target);
  while (count > 0) {
    const ssize_t got = pread(descriptor_, next, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(error_text(errno));
    if (got == 0) fail("it shrank while it was read");
    next += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

void InputFile::fail(const std::string& why) const {
  throw Error(ErrorKind::io, "load: the file must be readable; '" + path_ + "': " + why + "; check the path");
}

}  // namespace rosin
