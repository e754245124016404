// Staging: pinned host memory of a device that copies go through, piece by piece. Read first: open_device.hpp.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "graph/ticket.hpp"

namespace rosin {

class OpenDevice;

class Staging {
 public:
  explicit Staging(OpenDevice& device) noexcept : device_(device) {}

  static constexpr size_t most_bytes = size_t{8} << 20;  // of one piece of a copy

  /// A block that nothing uses: its taker's, until it is put back.
  struct Block {
    unsigned char* memory = nullptr;
    size_t bytes = 0;
    Ticket used_by;  // the copy that may still use it
  };
  /// At least so many bytes, at most `most_bytes`. Waits for the copy that used it before. Error (memory) where there
  /// is no such memory.
  Block take(size_t bytes);
  /// `used_by`: the last copy from or to it.
  void put(Block block, Ticket used_by) noexcept;

 private:
  static constexpr size_t kept = 4;  // blocks for which nobody waits; more come only where more are in use at once

  bool take_idle(size_t bytes, Block& found);

  OpenDevice& device_;
  std::mutex lock_;
  std::vector<Block> idle_;  // the one put back first comes first
  size_t all_ = 0;           // idle or taken
};

/// Holds a block of staging. (A copy that fails leaves none under way: DeviceStream::record.)
class Staged {
 public:
  Staged(Staging& staging, size_t bytes) : staging_(staging), block_(staging.take(bytes)) {}
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged() { staging_.put(block_, used_by_); }

  unsigned char* memory() const { return block_.memory; }
  void used_by(Ticket ticket) { used_by_ = ticket; }

 private:
  Staging& staging_;
  Staging::Block block_;
  Ticket used_by_;
};

}  // namespace rosin
