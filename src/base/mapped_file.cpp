// See mapped_file.hpp. Read next: platform/files.hpp.
#include "base/mapped_file.hpp"

#include <rosin/error.hpp>

namespace rosin {

MappedFile::MappedFile(const InputFile& file) : data_(nullptr), size_(file.size()) {
  if (const std::error_code error = platform::map_to_read(file.opened(), size_, data_)) {
    throw Error(ErrorKind::io, "load: the file must let itself be mapped; '" + file.path() + "': " + error.message() +
                                   "; load it without {.map = true}");
  }
}

MappedFile::~MappedFile() { platform::unmap(data_, size_); }

}  // namespace rosin
