// See world.hpp: what a collective asks of MPI. A large part goes to MPI where it lies, or piece by piece (pieces.cpp);
// small ones, and 16-bit floats that go to one root (as Float32), are copied together into memory of the transport
// first.
#include <algorithm>
#include <span>

#include "common/combine.hpp"
#include "common/parts.hpp"
#include "mpi/world.hpp"

namespace rosin::transport::mpi {
namespace {

constexpr uint64_t large_bytes = 1u << 17;   // of a part that is worth a call of its own
constexpr uint64_t most_count = 1u << 29;    // elements of one call, which counts in int
constexpr uint64_t staged_bytes = 4u << 20;  // of all ranks' stretches together, in one turn

/// What MPI does as a whole, and so without the sum of one piece beside the transfer of another.
bool is_in_pieces(int32_t kind) { return kind == ROSIN_COMM_ALLREDUCE || kind == ROSIN_COMM_REDUCE_SCATTER; }

}  // namespace

template <class H> H World<H>::type_of(const rosin_comm_collective& c) const {
  if (!combines(c.kind)) return c_.byte;
  return c_.types[static_cast<size_t>(is_half(c.type) ? ROSIN_COMM_FLOAT32 : c.type)];
}

template <class H> H World<H>::operation_of(int32_t operation, int32_t type) const {
  const bool is_float = is_half(type) || type == ROSIN_COMM_FLOAT32 || type == ROSIN_COMM_FLOAT64;
  if (is_float && operation == ROSIN_COMM_SUM) return c_.sum;
  if (is_float && operation == ROSIN_COMM_PRODUCT) return c_.product;
  const int32_t reduced = is_half(type) ? static_cast<int32_t>(ROSIN_COMM_FLOAT32) : type;
  return own_operations_[static_cast<size_t>(reduced * operation_count + operation)];
}

/// One call of MPI, and the wait for its end. `count` is that of rosin_comm_part, of elements as MPI is told them.
template <class H>
void World<H>::exchange(const rosin_comm_collective& c, const void* send, void* receive, uint64_t elements) {
  const H type = type_of(c), operation = combines(c.kind) ? operation_of(c.operation, c.type) : H{};
  const int count = static_cast<int>(elements);
  const bool is_root = c.root == rank_;
  const void* given = send == receive ? c_.in_place : send;
  switch (c.kind) {
    case ROSIN_COMM_BARRIER: return;  // the comparison was one
    case ROSIN_COMM_BROADCAST:
      return wait(c.timeout, "MPI_Ibcast", [&](H* request) {
        return f_.broadcast(is_root ? const_cast<void*>(send) : receive, count, type, c.root, data_, request);
      });
    case ROSIN_COMM_ALLREDUCE:
      return wait(c.timeout, "MPI_Iallreduce",
                  [&](H* request) { return f_.allreduce(given, receive, count, type, operation, data_, request); });
    case ROSIN_COMM_REDUCE:
      return wait(c.timeout, "MPI_Ireduce", [&](H* request) {
        return f_.reduce(is_root ? given : send, receive, count, type, operation, c.root, data_, request);
      });
    case ROSIN_COMM_ALLGATHER:
      return wait(c.timeout, "MPI_Iallgather",
                  [&](H* request) { return f_.allgather(given, count, type, receive, count, type, data_, request); });
    case ROSIN_COMM_REDUCE_SCATTER:
      return wait(c.timeout, "MPI_Ireduce_scatter_block", [&](H* request) {
        return f_.reduce_scatter(given, receive, count, type, operation, data_, request);
      });
    case ROSIN_COMM_SEND:
      return wait(c.timeout, "MPI_Isend",
                  [&](H* request) { return f_.send(send, count, type, c.root, mail_tag, data_, request); });
    default:
      return wait(c.timeout, "MPI_Irecv",
                  [&](H* request) { return f_.receive(receive, count, type, c.root, mail_tag, data_, request); });
  }
}

/// Memory of devices is MPI's to read and write, so only what it does itself is taken. Ranks decide alike.
template <class H> void World<H>::check_device_parts(const rosin_comm_collective& c) const {
  const bool is_float = c.type == ROSIN_COMM_FLOAT32 || c.type == ROSIN_COMM_FLOAT64;
  const bool is_mpis = is_float && (c.operation == ROSIN_COMM_SUM || c.operation == ROSIN_COMM_PRODUCT);
  bool is_taken = c.kind != ROSIN_COMM_REDUCE_SCATTER && (!combines(c.kind) || is_mpis);
  for (const rosin_comm_part& part : std::span(c.parts, c.part_count)) {
    is_taken = is_taken && part.count * bytes_of(c.type) * static_cast<uint64_t>(ranks_) <= most_count;
  }
  if (!is_taken) throw Trouble{ROSIN_COMM_UNSUPPORTED, "MPI does not do this on memory of devices"};
}

/// Whether MPI may have the memory of this part itself.
template <class H> bool World<H>::goes_directly(const rosin_comm_collective& c, const rosin_comm_part& part) const {
  const uint64_t bytes = part.count * bytes_of(c.type);
  // All ranks decide alike: by sizes and kinds, never by addresses.
  if (c.memory == ROSIN_COMM_DEVICE) return bytes != 0;
  if (bytes < large_bytes) return false;
  if (is_in_pieces(c.kind)) return true;
  return bytes * static_cast<uint64_t>(ranks_) <= most_count && !is_reduced_as_float(c);
}

template <class H> void World<H>::run_directly(const rosin_comm_collective& c, const rosin_comm_part& part) {
  if (is_in_pieces(c.kind) && c.memory == ROSIN_COMM_HOST) return reduce_in_pieces(c, part);
  const uint64_t unit = combines(c.kind) ? 1 : bytes_of(c.type);
  const char* own =
      static_cast<const char*>(part.receive) + part.count * bytes_of(c.type) * static_cast<uint64_t>(rank_);
  const bool in_place = c.kind == ROSIN_COMM_ALLGATHER && part.send == own;
  exchange(c, in_place ? part.receive : part.send, part.receive, part.count * unit);
}

template <class H> void World<H>::run_parts(const rosin_comm_collective& c) {
  rosin_comm_collective small = c;
  const auto run_small = [&](const rosin_comm_part* end) {
    small.part_count = static_cast<uint32_t>(end - small.parts);
    run_staged(small);
    small.parts = end + 1;
  };
  for (const rosin_comm_part& part : std::span(c.parts, c.part_count)) {
    if (!goes_directly(c, part)) continue;
    run_small(&part);
    run_directly(c, part);
  }
  if (c.part_count != 0) run_small(c.parts + c.part_count);
}

/// Turn by turn: copied together, exchanged, copied to where it belongs.
template <class H> void World<H>::run_staged(const rosin_comm_collective& c) {
  const uint64_t element = bytes_of(c.type), ranks = static_cast<uint64_t>(ranks_);
  const uint64_t most = std::max<uint64_t>(staged_bytes / ranks / 16 * 16, 16);
  const uint64_t sent = c.kind == ROSIN_COMM_REDUCE_SCATTER ? ranks : 1,
                 got = c.kind == ROSIN_COMM_ALLGATHER ? ranks : 1;
  const bool is_root = c.root == rank_;
  const bool gives = c.kind == ROSIN_COMM_BROADCAST ? is_root : c.kind != ROSIN_COMM_RECEIVE;
  const bool takes = c.kind == ROSIN_COMM_BROADCAST ? !is_root
                     : c.kind == ROSIN_COMM_REDUCE  ? is_root
                                                    : c.kind != ROSIN_COMM_SEND;
  std::vector<Walk> from, to;
  for (uint64_t i = 0; i < sent; ++i) from.emplace_back(c, static_cast<int>(i));
  for (uint64_t i = 0; i < got; ++i) to.emplace_back(c, static_cast<int>(i));
  for (uint64_t left = total_bytes(c), now; left != 0; left -= now) {
    now = std::min(left, most);
    given_.resize(std::max(given_.size(), now * sent));
    got_.resize(std::max(got_.size(), now * got));
    for (uint64_t i = 0; gives && i < sent; ++i) from[i].read(given_.data() + i * now, now);
    exchange_staged(c, now / element, sent * now / element, got * now / element);
    for (uint64_t i = 0; takes && i < got; ++i) to[i].write(got_.data() + i * now, now);
  }
}

/// given_ to got_, `count` elements for or of each rank.
template <class H>
void World<H>::exchange_staged(const rosin_comm_collective& c, uint64_t count, uint64_t sent, uint64_t got) {
  if (!is_reduced_as_float(c)) {
    return exchange(c, given_.data(), got_.data(), combines(c.kind) ? count : count * bytes_of(c.type));
  }
  wide_given_.resize(std::max(wide_given_.size(), sent));
  wide_got_.resize(std::max(wide_got_.size(), got));
  widen(c.type, given_.data(), wide_given_.data(), sent);
  exchange(c, wide_given_.data(), wide_got_.data(), count);
  narrow(c.type, wide_got_.data(), got_.data(), got);
}

template class World<void*>;
template class World<int>;

}  // namespace rosin::transport::mpi
