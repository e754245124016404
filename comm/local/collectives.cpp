// Collectives over the page, round by round: every rank copies the next bytes of its parts into its area, all meet, and
// each takes what it needs out of the areas of the others. A rank has two areas, so that one can be filled while others
// still read the other: one meeting between two uses of an area is enough. Read first: room.hpp.
#include <algorithm>
#include <array>
#include <span>

#include "common/combine.hpp"
#include "local/room.hpp"

namespace rosin::transport::local {
namespace {

// Up to here each rank combines the numbers of all ranks by itself, which saves a meeting.
constexpr uint64_t small_bytes = 4096;
constexpr uint64_t step = 64;  // stretches of an area begin at multiples of this many bytes

}  // namespace

void Room::run(const rosin_comm_collective& c) {
  if (broken_) throw *broken_;
  const bool between_two = c.kind == ROSIN_COMM_SEND || c.kind == ROSIN_COMM_RECEIVE;
  if (!page_) {
    run_alone(c);
    return;
  }
  try {
    throw_told_failure();
    current_ = describe(c, between_two ? number_ : number_ + 1, common_.data());
    if (between_two) {
      c.kind == ROSIN_COMM_SEND ? send(c) : receive(c);
    } else {
      begin(c);
      run_together(c);
      slot(rank_).ended.store(number_);
    }
  } catch (Trouble& trouble) {
    broken_ = trouble;
    tell_failure(trouble.status, trouble.text);
    throw;
  }
}

void Room::begin(const rosin_comm_collective& c) {
  Slot& mine = slot(rank_);
  ++number_;
  compared_ = false;
  mine.description[number_ & 1] = current_;
  mine.begun.store(number_, std::memory_order_release);
  if (c.kind == ROSIN_COMM_BARRIER || total_bytes(c) == 0) first_meeting(c.timeout);
}

/// Meets; after the first meeting of a collective it is known whether all mean the same one.
void Room::first_meeting(double timeout) {
  meet(timeout);
  if (!compared_) compare();
  compared_ = true;
}

void Room::compare() {
  const Description& first = slot(0).description[number_ & 1];
  for (int other = 1; other < ranks_; ++other) {
    const Description& its = slot(other).description[number_ & 1];
    if (its.hash != first.hash) throw Trouble{ROSIN_COMM_MISMATCH, difference_text(0, first, other, its)};
  }
}

void Room::run_together(const rosin_comm_collective& c) {
  if (total_bytes(c) == 0) return;
  switch (c.kind) {
    case ROSIN_COMM_BROADCAST: return broadcast(c);
    case ROSIN_COMM_ALLREDUCE:
    case ROSIN_COMM_REDUCE: return c.memory == ROSIN_COMM_COMMON ? reduce_in_common(c) : reduce(c);
    case ROSIN_COMM_ALLGATHER: return allgather(c);
    case ROSIN_COMM_REDUCE_SCATTER: return reduce_scatter(c);
    default: return;
  }
}

/// The stretch of each rank in a round of so many bytes: where that of `rank` begins.
uint64_t Room::begin_of(int rank, uint64_t bytes) const {
  const auto ranks = static_cast<uint64_t>(ranks_);
  const uint64_t stretch = (bytes + ranks * step - 1) / (ranks * step) * step;
  return std::min(bytes, static_cast<uint64_t>(rank) * stretch);
}

void Room::reduce(const rosin_comm_collective& c) {
  const bool wanted = c.kind == ROSIN_COMM_ALLREDUCE || c.root == rank_;
  Walk given(c), got(c);
  std::vector<const void*> places(static_cast<size_t>(ranks_));
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, area_bytes);
    const uint64_t round = rounds_++;
    given.read(area(rank_, round), now);
    first_meeting(c.timeout);
    const bool small = now <= small_bytes;
    const uint64_t begin = small ? 0 : begin_of(rank_, now), end = small ? now : begin_of(rank_ + 1, now);
    for (int other = 0; other < ranks_; ++other) places[static_cast<size_t>(other)] = area(other, round) + begin;
    if (small) {
      std::array<char, small_bytes> sum;
      if (wanted) combine_all(c.operation, c.type, places, now, sum.data());
      if (wanted) got.write(sum.data(), now);
      continue;
    }
    combine_all(c.operation, c.type, places, end - begin, area(rank_, round) + begin);
    meet(c.timeout);
    for (int other = 0; wanted && other < ranks_; ++other) {
      got.write(area(other, round) + begin_of(other, now), begin_of(other + 1, now) - begin_of(other, now));
    }
  }
}

/// Each rank gives the others their stretches, reads its own where it is, and writes its sums for all. An area is free
/// again when all have come to the next round, so only the last sums need a meeting of their own.
void Room::reduce_in_common(const rosin_comm_collective& c) {
  Walk given(c), own(c);
  std::vector<const void*> places(static_cast<size_t>(ranks_));
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, area_bytes);
    const uint64_t round = rounds_++, begin = begin_of(rank_, now), end = begin_of(rank_ + 1, now);
    given.read(area(rank_, round), begin);
    given.skip(end - begin);
    given.read(area(rank_, round) + end, now - end);
    first_meeting(c.timeout);
    own.skip(begin);
    uint64_t at = begin;
    own.each(end - begin, [&](const rosin_comm_part& part, uint64_t in_part, uint64_t bytes) {
      for (int other = 0; other < ranks_; ++other) places[static_cast<size_t>(other)] = area(other, round) + at;
      places[static_cast<size_t>(rank_)] = static_cast<const char*>(part.send) + in_part;
      combine_all(c.operation, c.type, places, bytes, static_cast<char*>(part.receive) + in_part);
      at += bytes;
    });
    own.skip(now - end);
  }
  meet(c.timeout);
}

void Room::reduce_scatter(const rosin_comm_collective& c) {
  const auto ranks = static_cast<uint64_t>(ranks_);
  const uint64_t most = area_bytes / ranks / step * step;
  std::vector<Walk> given;
  for (int other = 0; other < ranks_; ++other) given.emplace_back(c, other);
  Walk got(c);
  std::vector<const void*> places(static_cast<size_t>(ranks_));
  std::vector<char> sum(std::min(most, total_bytes(c)));
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, most);
    const uint64_t round = rounds_++;
    for (uint64_t other = 0; other < ranks; ++other) given[other].read(area(rank_, round) + other * most, now);
    first_meeting(c.timeout);
    for (int other = 0; other < ranks_; ++other) {
      places[static_cast<size_t>(other)] = area(other, round) + static_cast<uint64_t>(rank_) * most;
    }
    combine_all(c.operation, c.type, places, now, sum.data());
    got.write(sum.data(), now);
  }
}

void Room::broadcast(const rosin_comm_collective& c) {
  Walk walk(c);
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, area_bytes);
    const uint64_t round = rounds_++;
    if (rank_ == c.root) walk.read(area(rank_, round), now);
    first_meeting(c.timeout);
    if (rank_ != c.root) walk.write(area(c.root, round), now);
  }
}

void Room::allgather(const rosin_comm_collective& c) {
  Walk given(c);
  std::vector<Walk> got;
  for (int other = 0; other < ranks_; ++other) got.emplace_back(c, other);
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, area_bytes);
    const uint64_t round = rounds_++;
    given.read(area(rank_, round), now);
    first_meeting(c.timeout);
    for (int other = 0; other < ranks_; ++other) got[static_cast<size_t>(other)].write(area(other, round), now);
  }
}

}  // namespace rosin::transport::local
