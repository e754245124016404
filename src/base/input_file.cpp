// See input_file.hpp. Read next: platform/files.hpp.
#include "base/input_file.hpp"

#include <rosin/error.hpp>

namespace rosin {

using platform::FileKind;

InputFile::InputFile(const std::string& path, const char* op) : path_(path), op_(op) {
  if (const std::error_code error = platform::open_to_read(path, file_)) fail(error.message());
  platform::FileFacts facts;
  if (const std::error_code error = platform::facts_of(file_, facts)) fail(error.message());
  if (facts.kind == FileKind::folder) fail("it is a directory");
  if (facts.kind != FileKind::regular) fail("it is not a regular file");
  size_ = facts.size;
  private_ = facts.is_private;
}

void InputFile::read(uint64_t offset, void* target, size_t count) const {
  auto* next = static_cast<unsigned char*>(target);
  while (count > 0) {
    size_t got = 0;
    if (const std::error_code error = platform::read_at(file_, offset, next, count, got)) fail(error.message());
    if (got == 0) fail("it shrank while it was read");
    next += got;
    offset += got;
    count -= got;
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
