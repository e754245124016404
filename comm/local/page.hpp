// The memory that the processes of one machine share, as `rosin run` makes it and the transport reads it: a header, a
// slot for each rank, and areas for data. It is a memfd, which no name leads to: it goes with the last process.
// Included by tools/rosin too. Read next: room.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "common/describe.hpp"

namespace rosin::transport::local {

// What `rosin run` puts into the environment of each process.
inline constexpr const char* fd_variable = "ROSIN_LOCAL_FD";       // the number of the open memfd
inline constexpr const char* rank_variable = "ROSIN_RANK";         // of this process
inline constexpr const char* ranks_variable = "ROSIN_WORLD_SIZE";  // how many there are

inline constexpr int most_ranks = 256;
inline constexpr uint64_t magic = 0x6c61636f6c6e7372u;  // "rsnlocal"
inline constexpr uint32_t page_version = 2;
inline constexpr uint64_t area_bytes = 1u << 20;  // of data that a rank gives at a time; it has two of them
inline constexpr uint64_t mail_bytes = 1u << 18;  // of data that a rank sends to another at a time
inline constexpr uint64_t line = 128;             // what one processor writes is that far from what another one does

/// What the first rank that fails tells the others.
struct Failure {
  std::atomic<uint32_t> state;  // 0: none, 1: being written, 2: there
  int32_t rank;                 // who wrote it
  int32_t status;               // rosin_comm_status
  std::array<char, 1024> text;
};

struct Header {
  uint64_t magic;
  uint32_t version;
  int32_t ranks;
  uint64_t size;     // of the whole page
  int32_t launcher;  // the process that made it
  Failure failure;
  alignas(line) std::atomic<uint64_t> arrivals;  // of all ranks at all meetings
  alignas(line) std::atomic<uint32_t> meetings;  // those that are over, modulo 2^32: waited for
  alignas(line) std::atomic<uint32_t> sleepers;  // how many sleep on a word of the page
  std::atomic<uint64_t> common_bytes;            // behind the page; 0: the system does not give so many
};

/// How a process ended, as the launcher saw it.
enum class End : uint32_t { none, status, signal };

struct alignas(line) Slot {
  std::atomic<int32_t> process;                 // its number; 0: has not come yet
  std::atomic<uint32_t> left;                   // 1: has ended its membership
  std::atomic<uint32_t> end;                    // End; written by the launcher
  std::atomic<int32_t> end_value;               // the status or the signal
  std::array<char, 32> version;                 // of the transport
  alignas(line) std::atomic<uint64_t> arrived;  // meetings that it came to
  std::atomic<uint64_t> begun, ended;           // collectives
  std::array<Description, 2> description;       // of the last two, by the number's last bit
  alignas(line) std::atomic<uint32_t> posted;   // pieces of mail that it has sent, modulo 2^32
  std::atomic<int32_t> to;                      // for whom the last one is
  uint64_t mail_size, mail_left;                // bytes of that piece, and of all that follow it
  std::atomic<uint64_t> common_wanted;          // bytes that it has asked for
  std::atomic<uint32_t> has_common;             // 1: it can reach them
  alignas(line) std::atomic<uint32_t> taken;    // pieces that were taken out
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

constexpr uint64_t page_bytes(int ranks) {
  return sizeof(Header) + static_cast<uint64_t>(ranks) * (sizeof(Slot) + 2 * area_bytes + mail_bytes);
}

inline Slot& slot_of(Header& page, int rank) {
  return *(reinterpret_cast<Slot*>(reinterpret_cast<char*>(&page) + sizeof(Header)) + rank);
}

/// The areas of a rank behind all slots: the two for collectives, then the one for mail.
inline char* areas_of(Header& page, int rank) {
  const uint64_t before = sizeof(Header) + static_cast<uint64_t>(page.ranks) * sizeof(Slot);
  return reinterpret_cast<char*>(&page) + before + static_cast<uint64_t>(rank) * (2 * area_bytes + mail_bytes);
}

/// Where the memory in common begins in the file, in whole pages of any system.
constexpr uint64_t common_begin(int ranks) { return (page_bytes(ranks) + 0xffff) & ~uint64_t{0xffff}; }

/// Makes zeroed memory of page_bytes(ranks) bytes a page.
inline Header& make_page(void* memory, int ranks, int32_t launcher) {
  Header& page = *new (memory) Header{};
  page.version = page_version;
  page.ranks = ranks;
  page.size = page_bytes(ranks);
  page.launcher = launcher;
  for (int rank = 0; rank < ranks; ++rank) new (&slot_of(page, rank)) Slot{};
  page.magic = magic;
  return page;
}

/// Of the launcher: how the process of a rank ended, so that the others need not wait for it.
inline void mark_end(Slot& slot, End end, int value) {
  slot.end_value.store(value, std::memory_order_relaxed);
  slot.end.store(static_cast<uint32_t>(end), std::memory_order_release);
}

}  // namespace rosin::transport::local
