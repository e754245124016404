// The memory that the processes of a pretended NCCL communicator share: a memfd of the rank that made the unique id, to
// which the id leads. Read next: nccl.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace fake_nccl {

constexpr int most_ranks = 8;
constexpr uint64_t area_bytes = uint64_t{96} << 20;  // of what a rank gives to a group of collectives
constexpr uint64_t pipe_bytes = uint64_t{16} << 20;  // of a message from one rank to another

struct UniqueId {
  std::array<char, 128> bytes;
};

/// What one rank writes and all read.
struct alignas(128) Member {
  std::atomic<uint64_t> given, taken;  // groups whose input lies in its area, and those whose output it has
  std::atomic<uint64_t> hash;          // of the last group given
};

struct Pipe {
  std::atomic<uint64_t> posted, taken;  // messages
  uint64_t bytes;                       // of the last one
};

struct Page {
  std::atomic<int> joined;
  Member members[most_ranks];
  Pipe pipes[most_ranks][most_ranks];  // from, to

  char* area(int rank) { return memory() + static_cast<uint64_t>(rank) * area_bytes; }
  char* message(int from, int to) {
    const auto number = static_cast<uint64_t>(from * most_ranks + to);
    return memory() + most_ranks * area_bytes + number * pipe_bytes;
  }
  static constexpr uint64_t bytes() {
    return first_area + most_ranks * area_bytes + most_ranks * most_ranks * pipe_bytes;
  }

 private:
  static constexpr uint64_t first_area = 1u << 16;
  char* memory() { return reinterpret_cast<char*>(this) + first_area; }
};

/// A fresh page, and the id that leads to it. Throws fake::Trouble.
UniqueId make_page();
/// The page of an id; it stays. Throws fake::Trouble.
Page& open_page(const UniqueId& id);
/// Returns when all ranks have come to it.
void wait_for_all(Page& page, int ranks);

}  // namespace fake_nccl
