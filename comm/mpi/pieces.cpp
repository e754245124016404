// Large sums over all ranks, turn by turn: each rank gets its piece of a turn from all others, combines them in the
// order of the ranks, and gives the result to all. What a rank sends is twice the numbers at most, however many ranks
// there are; both directions and all ranks work at once; the pieces of the next turn are on their way while those of
// one are combined. MPI's own nonblocking sums move the whole before they add. Read first: world.hpp, collectives.cpp.
#include <algorithm>

#include "common/combine.hpp"
#include "mpi/world.hpp"

namespace rosin::transport::mpi {
namespace {

constexpr uint64_t turn_bytes = 2u << 20, least_piece = 64u << 10, most_piece = 512u << 10;
constexpr uint64_t step = 64;  // pieces begin at multiples of this many bytes

uint64_t piece_bytes(uint64_t ranks) { return std::clamp(turn_bytes / ranks / step * step, least_piece, most_piece); }

}  // namespace

/// A stretch of a part that is done at once.
template <class H> struct World<H>::Turn {
  std::vector<const char*> from;  // what this rank has for each rank
  std::vector<uint64_t> bytes;    // of each rank's piece
  std::vector<const void*> mine;  // where the ranks' numbers for this rank are, or will be
  std::vector<char*> to;          // where the result for each rank belongs; only this rank's of reduce_scatter
  std::vector<H> scattering{}, gathering{};
};

template <class H>
auto World<H>::turn_of(const rosin_comm_collective& c, const rosin_comm_part& part, uint64_t at, uint64_t number) const
    -> Turn {
  const auto ranks = static_cast<size_t>(ranks_), me = static_cast<size_t>(rank_);
  const uint64_t piece = piece_bytes(ranks), size = part.count * bytes_of(c.type);
  const bool scatters = c.kind == ROSIN_COMM_REDUCE_SCATTER;
  const uint64_t whole = std::min(size - at, piece * ranks);
  const uint64_t stretch = (whole + ranks * step - 1) / (ranks * step) * step;
  Turn turn{std::vector<const char*>(ranks), std::vector<uint64_t>(ranks), std::vector<const void*>(ranks),
            std::vector<char*>(ranks)};
  for (size_t other = 0; other < ranks; ++other) {
    const uint64_t begin = std::min(whole, other * stretch);
    const uint64_t place = scatters ? other * size + at : at + begin;
    turn.bytes[other] = scatters ? std::min(size - at, piece) : std::min(whole - begin, stretch);
    turn.from[other] = static_cast<const char*>(part.send) + place;
    turn.to[other] = static_cast<char*>(part.receive) + (scatters ? at : place);
    turn.mine[other] = pieces_.data() + ((number & 1) * ranks + other) * piece;
  }
  turn.mine[me] = turn.from[me];
  return turn;
}

template <class H>
void World<H>::post(std::vector<H>& requests, bool sends, int other, const void* bytes, uint64_t count, int tag) {
  H request{};
  const int length = static_cast<int>(count);
  const std::lock_guard lock(calls_);
  if (sends) good(f_.send(bytes, length, c_.byte, other, tag, data_, &request), "MPI_Isend");
  else good(f_.receive(const_cast<void*>(bytes), length, c_.byte, other, tag, data_, &request), "MPI_Irecv");
  requests.push_back(request);
}

template <class H> void World<H>::wait_all(std::vector<H>& requests, double timeout) {
  for (H& request : requests) {
    if (!ends_within(request, timeout)) ask_around(timeout);
  }
  requests.clear();
}

template <class H> void World<H>::scatter(Turn& turn) {
  const auto me = static_cast<size_t>(rank_);
  for (int distance = 1; distance < ranks_; ++distance) {
    const auto other = static_cast<size_t>((rank_ + distance) % ranks_);
    const int its = static_cast<int>(other);
    if (turn.bytes[me] != 0) post(turn.scattering, false, its, turn.mine[other], turn.bytes[me], scatter_tag);
    if (turn.bytes[other] != 0) post(turn.scattering, true, its, turn.from[other], turn.bytes[other], scatter_tag);
  }
}

template <class H> void World<H>::combine_turn(const rosin_comm_collective& c, Turn& turn) {
  const auto me = static_cast<size_t>(rank_);
  // What is sent, too: the results of others may come to where it lies.
  wait_all(turn.scattering, c.timeout);
  combine_all(c.operation, c.type, turn.mine, turn.bytes[me], turn.to[me]);
}

template <class H> void World<H>::gather(Turn& turn) {
  const auto me = static_cast<size_t>(rank_);
  for (int distance = 1; distance < ranks_; ++distance) {
    const auto other = static_cast<size_t>((rank_ + distance) % ranks_);
    const int its = static_cast<int>(other);
    if (turn.bytes[other] != 0) post(turn.gathering, false, its, turn.to[other], turn.bytes[other], gather_tag);
    if (turn.bytes[me] != 0) post(turn.gathering, true, its, turn.to[me], turn.bytes[me], gather_tag);
  }
}

template <class H> void World<H>::reduce_in_pieces(const rosin_comm_collective& c, const rosin_comm_part& part) {
  const auto ranks = static_cast<uint64_t>(ranks_);
  const uint64_t size = part.count * bytes_of(c.type), piece = piece_bytes(ranks);
  const uint64_t stride = c.kind == ROSIN_COMM_REDUCE_SCATTER ? piece : piece * ranks;
  pieces_.resize(2 * ranks * piece);
  Turn now = turn_of(c, part, 0, 0), before{};
  scatter(now);
  for (uint64_t at = 0, number = 0; at < size; at += stride, ++number) {
    Turn next{};
    if (at + stride < size) {
      next = turn_of(c, part, at + stride, number + 1);
      scatter(next);
    }
    combine_turn(c, now);
    if (c.kind == ROSIN_COMM_ALLREDUCE) gather(now);
    wait_all(before.gathering, c.timeout);
    before = std::move(now);
    now = std::move(next);
  }
  wait_all(before.gathering, c.timeout);
}

template class World<void*>;
template class World<int>;

}  // namespace rosin::transport::mpi
