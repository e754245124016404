// Sums in memory that the ranks of one machine have in common: each is written once for all of them, and read where it
// is. The arrays stay from step to step. Read first: group.hpp. Read next: buckets.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rosin/comm.h>
#include <rosin/array.hpp>

namespace rosin::distributed {

class CommonSums {
 public:
  CommonSums(const rosin_comm_transport& transport, rosin_comm& comm);
  CommonSums(const CommonSums&) = delete;
  CommonSums& operator=(const CommonSums&) = delete;

  /// Whether this rank can take the sums of `given` there now: the transport may have such memory, it is worth a
  /// meeting more, and nobody here reads what was summed last.
  bool suit(std::span<const Array> given) const;
  /// Arrays like `given`, whose contents other ranks write in collectives of that memory; empty where the system gives
  /// none. Every rank calls it with the same types and shapes, where all suit. (The transport's status otherwise.)
  rosin_comm_status take(std::span<const Array> given, double timeout, std::vector<Array>& made);

 private:
  static constexpr uint64_t least_bytes = uint64_t{1} << 14;

  bool are_read() const;
  bool are_like(std::span<const Array> given) const;
  void lay_out(std::span<const Array> given);

  const rosin_comm_transport& transport_;
  rosin_comm& comm_;
  bool is_offered_;
  char* memory_ = nullptr;
  std::vector<Array> sums_;
};

}  // namespace rosin::distributed
