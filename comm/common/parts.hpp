// The parts of a collective as one run of bytes, which is read and written piece by piece. Read next: combine.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <rosin/comm.h>

namespace rosin::transport {

/// Bytes of all parts together, where each is one time its count.
uint64_t total_bytes(const rosin_comm_collective& collective);

/// Walks over the parts: of each part the bytes [stretch * n, (stretch + 1) * n), where n is the part's count in bytes.
/// The parts outlive it.
class Walk {
 public:
  explicit Walk(const rosin_comm_collective& collective, int stretch = 0);
  /// Copies the next bytes of what is sent; there are that many left.
  void read(void* to, uint64_t bytes);
  /// Copies into the next bytes of what is received; there are that many left.
  void write(const void* from, uint64_t bytes);
  /// Goes past the next bytes.
  void skip(uint64_t bytes);
  /// The same, and calls piece(part, at, bytes) for those of each part: they begin `at` bytes into it.
  template <class F> void each(uint64_t bytes, F&& piece);

 private:
  std::span<const rosin_comm_part> parts_;
  uint64_t element_, stretch_;
  uint64_t offset_ = 0;  // bytes of parts_[0] that are done
};

template <class F> void Walk::each(uint64_t bytes, F&& piece) {
  while (bytes != 0) {
    const uint64_t size = parts_.front().count * element_;
    const uint64_t now = std::min(bytes, size - offset_);
    if (now != 0) piece(parts_.front(), stretch_ * size + offset_, now);
    bytes -= now;
    offset_ += now;
    if (offset_ == size) {
      parts_ = parts_.subspan(1);
      offset_ = 0;
    }
  }
}

/// What a collective among one rank alone does.
void run_alone(const rosin_comm_collective& collective);

}  // namespace rosin::transport
