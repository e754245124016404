// The processes of an MPI job, whatever the library. Read next: world.hpp (with MPI).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <rosin/comm.h>

namespace rosin::transport::mpi {

/// What the table of functions stands on; throws Trouble.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual rosin_comm_place place() const = 0;
  virtual void run(const rosin_comm_collective& collective) = 0;
  virtual void abort() noexcept = 0;
  virtual void leave() = 0;
  virtual std::string version() const = 0;
  /// Throws Trouble with the reason where memory of devices of this kind is not taken.
  virtual void require_devices(std::string_view backend) const = 0;
};

}  // namespace rosin::transport::mpi
