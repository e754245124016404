// The parts of a collective as one run of bytes, which is read and written piece by piece. Read next: combine.hpp.
#pragma once

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

 private:
  template <class F> void each(uint64_t bytes, F&& piece);

  std::span<const rosin_comm_part> parts_;
  uint64_t element_, stretch_;
  uint64_t offset_ = 0;  // bytes of parts_[0] that are done
};

/// What a collective among one rank alone does.
void run_alone(const rosin_comm_collective& collective);

}  // namespace rosin::transport
