// What NCCL leaves to others: processes that find each other, arrays of the host, comparing what ranks call. Another
// transport that lies beside this one does it: local under `rosin run`, tcp with ROSIN_MASTER, else mpi. Read next:
// world.hpp.
#pragma once

#include <span>
#include <string>

#include <rosin/comm.h>

namespace rosin::transport::nccl {

class Carrier {
 public:
  /// Loads it and joins. Throws Trouble.
  explicit Carrier(double timeout);
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  const rosin_comm_place& place() const { return place_; }
  std::string name() const { return std::string(functions_->name) + " " + functions_->version; }
  /// Throws Trouble.
  void run(const rosin_comm_collective& collective);
  void abort(const char* why) noexcept { functions_->abort(comm_, why); }
  void check();
  void leave() noexcept { functions_->leave(); }

  /// `bytes` of each rank, rank by rank; `name` is told where ranks call something else. Throws Trouble.
  void gather(const void* mine, void* all, size_t bytes, const char* name, double timeout);

 private:
  void good(rosin_comm_status status) const;

  const rosin_comm_transport* functions_;
  rosin_comm* comm_ = nullptr;
  rosin_comm_place place_{};
};

}  // namespace rosin::transport::nccl
