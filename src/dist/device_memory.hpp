// Collectives on arrays that lie on one device. A transport that takes its memory gets the addresses, and the work
// waits in the device's stream for communication; for others the arrays are copied through pinned memory of the host,
// all parts of a collective at once. Either way the host waits until the ranks are done, if not before the last of
// several: what went wrong is known before anything is made of the result. The device waits for what writes the arrays
// and nothing else (run/early.hpp). Read first: group.hpp, run/open_device.hpp.
#pragma once

#include <span>
#include <vector>

#include <rosin/comm.h>

#include "dist/group.hpp"
#include "run/open_device.hpp"

namespace rosin::distributed {

/// Throws what checks of a run have found that has made x, on a device: waits for that. Nothing for the CPU's.
void look_at_checks(const Array& x);

class DeviceMemory {
 public:
  /// `place`: of this process among the others; `position`: of the device.
  DeviceMemory(const rosin_comm_transport& transport, rosin_comm& comm, const rosin_comm_place& place, int position);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// A collective of which all but parts, memory and stream is said, on pieces of the device; as
  /// rosin_comm_transport::run; `more`: see Verb. Error (memory, backend).
  rosin_comm_status run(rosin_comm_collective collective, std::span<const Piece> pieces, bool more);
  /// Waits for what has been given with `more`.
  rosin_comm_status settle(double timeout);

 private:
  class HostPlaces;
  using Parts = std::vector<rosin_comm_part>;

  rosin_comm_status run_on_stream(rosin_comm_collective& collective, std::span<const Piece> pieces, bool more);
  rosin_comm_status run_at_rest(rosin_comm_collective& collective, std::span<const Piece> pieces);
  rosin_comm_status run_staged(rosin_comm_collective& collective, std::span<const Piece> pieces);
  void copy_out(std::span<const Piece> pieces, const HostPlaces& places, unsigned char* host);
  void copy_in(std::span<const Piece> pieces, const HostPlaces& places, const unsigned char* host);
  Parts addresses(const rosin_comm_collective& collective, std::span<const Piece> pieces) const;
  rosin_comm_status wait(Ticket work, double timeout);
  rosin_comm_status ask_for_all() const;
  void has_written(std::span<const Piece> pieces, Ticket work);
  void order(std::span<const Piece> pieces);
  unsigned char* pinned(size_t bytes);

  const rosin_comm_transport& transport_;
  rosin_comm& comm_;
  const rosin_comm_place& place_;
  OpenDevice& device_;
  DeviceStream& stream_;
  rosin_comm_devices way_;
  unsigned char* pinned_ = nullptr;  // goes with the process
  size_t pinned_bytes_ = 0;
  Ticket pinned_use_;             // the last copy from it
  std::vector<Piece> under_way_;  // of collectives on the stream that nobody has waited for
  Ticket last_;                   // of them
};

}  // namespace rosin::distributed
