// Memory that all ranks have in common: the file of the page is made longer, and each maps what is behind the page.
// Read first: room.hpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "local/room.hpp"

namespace rosin::transport::local {
namespace {

constexpr uint64_t whole = 1u << 16;  // what is asked for is rounded up to so many bytes

/// Whether the file has so many bytes behind the page now, with memory behind each: who writes there is not ended.
bool has_grown(int file, uint64_t begin, uint64_t bytes) {
  const auto from = static_cast<off_t>(begin), count = static_cast<off_t>(bytes);
  return ftruncate(file, from + count) == 0 && posix_fallocate(file, from, count) == 0;
}

}  // namespace

void* Room::common(uint64_t bytes, double timeout) {
  if (broken_) throw *broken_;
  if (bytes <= common_.size()) return common_.data();
  unmap_common();
  const uint64_t wanted = (bytes + whole - 1) / whole * whole;
  try {
    if (page_) give_common(wanted, timeout);
    else if (map_common(wanted)) return common_.data();
  } catch (Trouble& trouble) {
    broken_ = trouble;
    tell_failure(trouble.status, trouble.text);
    throw;
  }
  if (!common_.empty()) return common_.data();
  throw Trouble{ROSIN_COMM_UNSUPPORTED,
                "the system does not give " + std::to_string(wanted) + " bytes of memory in common"};
}

/// Leaves it empty where a rank cannot have it.
void Room::give_common(uint64_t bytes, double timeout) {
  throw_told_failure();
  current_ = {};
  put_text(current_.name, "memory in common");
  slot(rank_).common_wanted.store(bytes);
  meet(timeout);  // now nobody has the old one
  for (int other = 0; other < ranks_; ++other) {
    const uint64_t its = slot(other).common_wanted.load();
    if (its == bytes) continue;
    throw Trouble{ROSIN_COMM_MISMATCH, "rank " + std::to_string(other) + " asks for " + std::to_string(its) +
                                           " bytes of memory in common, rank " + std::to_string(rank_) + " for " +
                                           std::to_string(bytes)};
  }
  if (rank_ == 0) page_->common_bytes.store(has_grown(file_, common_begin(ranks_), bytes) ? bytes : 0);
  meet(timeout);
  slot(rank_).has_common.store(page_->common_bytes.load() == bytes && map_common(bytes) ? 1 : 0);
  meet(timeout);
  for (int other = 0; other < ranks_; ++other) {
    if (slot(other).has_common.load() == 0) unmap_common();
  }
}

bool Room::map_common(uint64_t bytes) {
  const int kind = page_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  const auto from = page_ ? static_cast<off_t>(common_begin(ranks_)) : 0;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, file_, from);
  if (memory == MAP_FAILED) return false;
  common_ = {static_cast<char*>(memory), bytes};
  return true;
}

void Room::unmap_common() noexcept {
  if (!common_.empty()) munmap(common_.data(), common_.size());
  common_ = {};
}

}  // namespace rosin::transport::local
