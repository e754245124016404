// The system calls behind input_file.hpp (POSIX). Read next: nothing, this is a leaf.
#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <rosin/error.hpp>

#include "base/system_call.hpp"

namespace rosin {

InputFile::InputFile(const std::string& path, const char* op)
    : path_(path), op_(op),
      descriptor_(uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })) {
  if (descriptor_ < 0) fail(system_text(errno));
  struct stat info {};
  const bool known = fstat(descriptor_, &info) == 0;
  const std::string why = !known                   ? system_text(errno)
                          : S_ISDIR(info.st_mode)  ? "it is a directory"
                          : !S_ISREG(info.st_mode) ? "it is not a regular file"
                                                   : "";
  if (!why.empty()) {
    close(descriptor_);
    fail(why);
  }
  size_ = static_cast<uint64_t>(info.st_size);
  private_ = info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(uint64_t offset, void* target, size_t count) const {
  auto* next = static_cast<unsigned char*>(target);
  while (count > 0) {
    const ssize_t got = uninterrupted([&] { return pread(descriptor_, next, count, static_cast<off_t>(offset)); });
    if (got < 0) fail(system_text(errno));
    if (got == 0) fail("it shrank while it was read");
    next += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<size_t>(got);
  }
}

void InputFile::fail(const std::string& why) const {
  throw Error(ErrorKind::io,
              std::string(op_) + ": the file must be readable; '" + path_ + "': " + why + "; check the path");
}

std::vector<uint8_t> read_whole_file(const std::string& path, uint64_t most) {
  const InputFile file(path);
  if (file.size() > most) {
    throw Error(ErrorKind::io, "read: such a file has at most " + std::to_string(most) + " bytes; '" + path + "' has " +
                                   std::to_string(file.size()) + "; check the path");
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace rosin
