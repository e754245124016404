// The system calls behind mapped_file.hpp (POSIX). Read next: nothing, this is a leaf.
#include "base/mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>

#include <rosin/error.hpp>

#include "base/system_call.hpp"

namespace rosin {

MappedFile::MappedFile(const InputFile& file) : data_(nullptr), size_(file.size()) {
  // A private mapping that may only be read: no page of it ever differs from the file or goes back to it.
  void* const mapped = mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED) {
    throw Error(ErrorKind::io, "load: the file must let itself be mapped; '" + file.path() +
                                   "': " + system_text(errno) + "; load it without {.map = true}");
  }
  data_ = static_cast<const unsigned char*>(mapped);
}

MappedFile::~MappedFile() { munmap(const_cast<unsigned char*>(data_), static_cast<size_t>(size_)); }

}  // namespace rosin
