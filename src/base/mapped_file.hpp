// A file as memory. Read first: input_file.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "base/input_file.hpp"

namespace rosin {

/// The bytes of an open file, mapped to be read: the system brings the pages that are touched, and nothing can be
/// written through it. It outlives the InputFile, and stays what it was when another file takes the name. A file that
/// is cut off meanwhile raises SIGBUS where a page beyond its end is touched, and what is written into it in place is
/// seen: therefore only what asks for a mapping gets one. Error (io): the file is empty, or the system refuses.
class MappedFile {
 public:
  explicit MappedFile(const InputFile& file);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const unsigned char* data() const noexcept { return data_; }

 private:
  const unsigned char* data_;
  uint64_t size_;
};

}  // namespace rosin
