// librosin_comm_local.so: the table of functions over a Room. Read first: rosin/comm.h. Read next: room.hpp.
#include <memory>

#include "local/room.hpp"

/// The communicator of all processes, the only one.
struct rosin_comm {
  rosin::transport::local::Room room;
};

namespace rosin::transport::local {
namespace {

std::unique_ptr<rosin_comm>& joined() {
  static auto& all =
      *new std::unique_ptr<rosin_comm>;  // never destroyed: a thread may wait in it when the process exits
  return all;
}

rosin_comm_status join(double timeout) {
  return guarded([&] {
    if (joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has joined already"};
    joined().reset(new rosin_comm{Room(timeout)});
  });
}

rosin_comm_status world(rosin_comm** out) {
  return guarded([&] {
    if (!joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has not joined"};
    *out = joined().get();
  });
}

void leave() { joined().reset(); }

rosin_comm_status place(rosin_comm* comm, rosin_comm_place* out) {
  return guarded([&] {
    const int32_t rank = comm->room.rank(), ranks = comm->room.ranks();
    const rosin_comm_place all{sizeof(rosin_comm_place), rank, ranks, rank, ranks};
    if (!out || out->size < sizeof all) throw Trouble{ROSIN_COMM_INVALID, "there is no room for the place"};
    *out = all;
  });
}

rosin_comm_status run(rosin_comm* comm, const rosin_comm_collective* collective) {
  return guarded([&] { comm->room.run(checked(collective, comm->room.rank(), comm->room.ranks())); });
}

rosin_comm_status check(rosin_comm* comm) {
  return guarded([&] { comm->room.check(); });
}

void abort(rosin_comm* comm, const char* why) { comm->room.abort(why); }

const rosin_comm_transport table = {.size = sizeof(rosin_comm_transport),
                                    .abi = ROSIN_COMM_ABI,
                                    .name = "Local",
                                    .version = ROSIN_VERSION,
                                    .error_text = error_text,
                                    .join = join,
                                    .world = world,
                                    .leave = leave,
                                    .place = place,
                                    .run = run,
                                    .abort = abort,
                                    .takes_devices = nullptr,
                                    .check = check};

}  // namespace
}  // namespace rosin::transport::local

extern "C" __attribute__((visibility("default"))) const rosin_comm_transport* rosin_comm_open(uint32_t abi) {
  return abi == ROSIN_COMM_ABI ? &rosin::transport::local::table : nullptr;
}
