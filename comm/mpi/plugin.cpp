// librosin_comm_mpi.so: the processes of an MPI job as transport. Read first: rosin/comm.h, common/ranks.hpp. Read
// next: library.hpp, world.hpp.
#include "common/parts.hpp"
#include "common/ranks.hpp"
#include "mpi/library.hpp"
#include "mpi/world.hpp"

namespace rosin::transport {
namespace mpi {
namespace {

/// This process alone, without any MPI.
class Alone final : public Ranks {
 public:
  rosin_comm_place place() const override { return {sizeof(rosin_comm_place), 0, 1, 0, 1}; }
  void run(const rosin_comm_collective& collective) override { run_alone(collective); }
  void abort(const char*) noexcept override {}
  void leave() override {}
  std::string version() const override { return ROSIN_VERSION " (without MPI)"; }
  void require_devices(std::string_view) const override {
    throw Trouble{ROSIN_COMM_UNSUPPORTED, "there is no MPI that takes memory of devices"};
  }
};

}  // namespace
}  // namespace mpi

const char* const transport_name = "MPI";

std::unique_ptr<Ranks> join_ranks(double timeout) {
  const std::optional<mpi::Library> library = mpi::find_library();
  if (!library) return std::make_unique<mpi::Alone>();
  if (library->is_open_mpi) return std::make_unique<mpi::World<void*>>(*library, timeout);
  return std::make_unique<mpi::World<int>>(*library, timeout);
}

}  // namespace rosin::transport
