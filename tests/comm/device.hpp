// Collectives on memory of a device, for transports that take it: what ranks give and get lies on the host, as in all
// other checks, and is copied there and back around each. Read first: rig.hpp, rosin/backend.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rosin/backend.h>
#include <rosin/comm.h>

namespace comm_test {

class Device {
 public:
  /// Opens device number `id` of a plug-in by its path, modulo their count. Null after a complaint.
  static std::unique_ptr<Device> open(const char* plugin, int id);

  const char* name() const { return functions_->name; }
  /// The collective with all parts on the device, as work of a stream or at rest, to its end; as
  /// rosin_comm_transport::run.
  rosin_comm_status run(const rosin_comm_transport& transport, rosin_comm* comm, const rosin_comm_collective& c,
                        int rank, int ranks, bool with_stream);

 private:
  struct Block;

  Device() = default;
  bool good(rosin_status status, const char* what) const;
  std::vector<Block> blocks(const rosin_comm_collective& c, std::vector<rosin_comm_part>& parts, int rank, int ranks);
  rosin_comm_status wait(const rosin_comm_transport& transport, rosin_comm* comm);

  const rosin_backend* functions_ = nullptr;
  rosin_device* device_ = nullptr;
  rosin_stream* stream_ = nullptr;
  rosin_event* event_ = nullptr;
};

}  // namespace comm_test
