// A place in a block of a file that moves forward, and never beyond its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5_objects.hpp"

namespace rosin {

class Hdf5File::Cursor {
 public:
  /// Bytes at ... end - 1 of a block, which begins at `start` in the file.
  Cursor(const Hdf5File& file, const std::vector<unsigned char>& block, uint64_t start, size_t at, size_t end)
      : file_(file), block_(block), start_(start), at_(at), end_(end) {}

  uint64_t left() const noexcept { return end_ - at_; }
  uint64_t place() const noexcept { return start_ + at_; }
  [[noreturn]] void refuse(const std::string& rule, const std::string& what) const {
    file_.refuse(place(), rule, what);
  }

  /// Little-endian, of one to eight bytes.
  uint64_t number(uint64_t width) {
    need(width);
    uint64_t value = 0;
    for (size_t i = static_cast<size_t>(width); i-- > 0;) value = value << 8 | block_[at_ + i];
    at_ += static_cast<size_t>(width);
    return value;
  }
  std::string text(uint64_t count) {
    need(count);
    std::string found(reinterpret_cast<const char*>(block_.data()) + at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return found;
  }
  /// Up to a zero byte, which is passed.
  std::string text() {
    size_t end = at_;
    while (end < end_ && block_[end] != 0) ++end;
    if (end == end_) refuse("a name must end", "it does not");
    std::string found = text(end - at_);
    ++at_;
    return found;
  }
  /// The next `count` bytes, which are passed.
  Cursor part(uint64_t count) {
    need(count);
    const size_t first = at_;
    at_ += static_cast<size_t>(count);
    return Cursor(file_, block_, start_, first, at_);
  }

 private:
  void need(uint64_t count) const {
    if (count > left()) refuse("a part of a header must end within it", "it is cut off");
  }

  const Hdf5File& file_;
  const std::vector<unsigned char>& block_;
  uint64_t start_;
  size_t at_;
  size_t end_;
};

}  // namespace rosin
