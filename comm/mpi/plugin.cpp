// librosin_comm_mpi.so: the table of functions. Read first: rosin/comm.h. Read next: library.hpp, world.hpp.
#include "common/describe.hpp"
#include "common/parts.hpp"
#include "common/trouble.hpp"
#include "mpi/library.hpp"
#include "mpi/world.hpp"

/// The communicator of all processes, the only one.
struct rosin_comm {
  std::unique_ptr<rosin::transport::mpi::Ranks> ranks;
  std::string version;
};

namespace rosin::transport::mpi {
namespace {

/// This process alone, without any MPI.
class Alone final : public Ranks {
 public:
  rosin_comm_place place() const override { return {sizeof(rosin_comm_place), 0, 1, 0, 1}; }
  void run(const rosin_comm_collective& collective) override { run_alone(collective); }
  void abort() noexcept override {}
  void leave() override {}
  std::string version() const override { return ROSIN_VERSION " (without MPI)"; }
  void require_devices(std::string_view) const override {
    throw Trouble{ROSIN_COMM_UNSUPPORTED, "there is no MPI that takes memory of devices"};
  }
};

std::unique_ptr<Ranks> joined_ranks(double timeout) {
  const std::optional<Library> library = find_library();
  if (!library) return std::make_unique<Alone>();
  if (library->is_open_mpi) return std::make_unique<World<void*>>(*library, timeout);
  return std::make_unique<World<int>>(*library, timeout);
}

rosin_comm_transport& table();

std::unique_ptr<rosin_comm>& joined() {
  static auto& all =
      *new std::unique_ptr<rosin_comm>;  // never destroyed: a thread may wait in it when the process exits
  return all;
}

rosin_comm_status join(double timeout) {
  return guarded([&] {
    if (joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has joined already"};
    auto ranks = joined_ranks(timeout);
    std::string version = ranks->version();
    joined().reset(new rosin_comm{std::move(ranks), std::move(version)});
    table().version = joined()->version.c_str();
  });
}

rosin_comm_status world(rosin_comm** out) {
  return guarded([&] {
    if (!joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has not joined"};
    *out = joined().get();
  });
}

/// The communicator itself stays: another thread may be on its way out of it.
void leave() {
  if (joined()) joined()->ranks->leave();
}

rosin_comm_status place(rosin_comm* comm, rosin_comm_place* out) {
  return guarded([&] {
    if (!out || out->size < sizeof *out) throw Trouble{ROSIN_COMM_INVALID, "there is no room for the place"};
    *out = comm->ranks->place();
  });
}

rosin_comm_status run(rosin_comm* comm, const rosin_comm_collective* collective) {
  return guarded([&] {
    const rosin_comm_place here = comm->ranks->place();
    comm->ranks->run(checked(collective, here.rank, here.ranks, ROSIN_COMM_AT_REST));
  });
}

void abort(rosin_comm* comm, const char*) { comm->ranks->abort(); }

int32_t takes_devices(rosin_comm* comm, const char* backend) {
  const rosin_comm_status status = guarded([&] { comm->ranks->require_devices(backend ? backend : ""); });
  return status == ROSIN_COMM_OK ? ROSIN_COMM_AT_REST : ROSIN_COMM_NO_DEVICES;
}

rosin_comm_transport& table() {
  static rosin_comm_transport all = {.size = sizeof(rosin_comm_transport),
                                     .abi = ROSIN_COMM_ABI,
                                     .name = "MPI",
                                     .version = ROSIN_VERSION,
                                     .error_text = error_text,
                                     .join = join,
                                     .world = world,
                                     .leave = leave,
                                     .place = place,
                                     .run = run,
                                     .abort = abort,
                                     .takes_devices = takes_devices,
                                     .check = nullptr};
  return all;
}

}  // namespace
}  // namespace rosin::transport::mpi

extern "C" __attribute__((visibility("default"))) const rosin_comm_transport* rosin_comm_open(uint32_t abi) {
  return abi == ROSIN_COMM_ABI ? &rosin::transport::mpi::table() : nullptr;
}
