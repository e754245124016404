// librosin_comm_nccl.so: the table of functions over a World. Read first: rosin/comm.h. Read next: world.hpp.
#include <memory>
#include <string_view>

#include "nccl/world.hpp"

/// The communicator of all processes, the only one.
struct rosin_comm {
  explicit rosin_comm(double timeout) : world(timeout) {}
  rosin::transport::nccl::World world;
};

namespace rosin::transport::nccl {
namespace {

rosin_comm_transport& table();

std::unique_ptr<rosin_comm>& joined() {
  static auto& all = *new std::unique_ptr<rosin_comm>;  // never destroyed: a thread may wait in it at exit
  return all;
}

rosin_comm_status join(double timeout) {
  return guarded([&] {
    if (joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has joined already"};
    joined() = std::make_unique<rosin_comm>(timeout);
    table().version = joined()->world.version().c_str();
  });
}

rosin_comm_status world(rosin_comm** out) {
  return guarded([&] {
    if (!joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has not joined"};
    *out = joined().get();
  });
}

void leave() {
  if (joined()) joined()->world.leave();
}

rosin_comm_status place(rosin_comm* comm, rosin_comm_place* out) {
  return guarded([&] {
    if (!out || out->size < sizeof *out) throw Trouble{ROSIN_COMM_INVALID, "there is no room for the place"};
    *out = comm->world.place();
  });
}

rosin_comm_status run(rosin_comm* comm, const rosin_comm_collective* collective) {
  return guarded([&] {
    const rosin_comm_place& here = comm->world.place();
    comm->world.run(checked(collective, here.rank, here.ranks, ROSIN_COMM_WITH_STREAM));
  });
}

void abort(rosin_comm* comm, const char* why) { comm->world.abort(why); }

int32_t takes_devices(rosin_comm*, const char* backend) {
  if (backend && std::string_view(backend) == "CUDA") return ROSIN_COMM_WITH_STREAM;
  guarded([] { throw Trouble{ROSIN_COMM_UNSUPPORTED, "NCCL takes memory of CUDA devices alone"}; });
  return ROSIN_COMM_NO_DEVICES;
}

rosin_comm_status check(rosin_comm* comm) {
  return guarded([&] { comm->world.check(); });
}

rosin_comm_transport& table() {
  static rosin_comm_transport all = {.size = sizeof(rosin_comm_transport),
                                     .abi = ROSIN_COMM_ABI,
                                     .name = "NCCL",
                                     .version = ROSIN_VERSION,
                                     .error_text = error_text,
                                     .join = join,
                                     .world = world,
                                     .leave = leave,
                                     .place = place,
                                     .run = run,
                                     .abort = abort,
                                     .takes_devices = takes_devices,
                                     .check = check};
  return all;
}

}  // namespace
}  // namespace rosin::transport::nccl

extern "C" __attribute__((visibility("default"))) const rosin_comm_transport* rosin_comm_open(uint32_t abi) {
  return abi == ROSIN_COMM_ABI ? &rosin::transport::nccl::table() : nullptr;
}
