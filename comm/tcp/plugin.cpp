// librosin_comm_tcp.so: the table of functions over a Star. Read first: rosin/comm.h. Read next: star.hpp.
#include <memory>

#include "tcp/star.hpp"

/// The communicator of all processes, the only one.
struct rosin_comm {
  explicit rosin_comm(double timeout) : star(timeout) {}
  rosin::transport::tcp::Star star;
};

namespace rosin::transport::tcp {
namespace {

std::unique_ptr<rosin_comm>& joined() {
  static auto& all =
      *new std::unique_ptr<rosin_comm>;  // never destroyed: a thread may wait in it when the process exits
  return all;
}

rosin_comm_status join(double timeout) {
  return guarded([&] {
    if (joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has joined already"};
    joined().reset(new rosin_comm(timeout));
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
  if (joined()) joined()->star.leave();
}

rosin_comm_status place(rosin_comm* comm, rosin_comm_place* out) {
  return guarded([&] {
    if (!out || out->size < sizeof *out) throw Trouble{ROSIN_COMM_INVALID, "there is no room for the place"};
    *out = comm->star.place();
  });
}

rosin_comm_status run(rosin_comm* comm, const rosin_comm_collective* collective) {
  return guarded([&] { comm->star.run(checked(collective, comm->star.place().rank, comm->star.place().ranks)); });
}

rosin_comm_status check(rosin_comm* comm) {
  return guarded([&] { comm->star.check(); });
}

void abort(rosin_comm* comm, const char* why) { comm->star.abort(why); }

const rosin_comm_transport table = {.size = sizeof(rosin_comm_transport),
                                    .abi = ROSIN_COMM_ABI,
                                    .name = "TCP",
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
}  // namespace rosin::transport::tcp

extern "C" __attribute__((visibility("default"))) const rosin_comm_transport* rosin_comm_open(uint32_t abi) {
  return abi == ROSIN_COMM_ABI ? &rosin::transport::tcp::table : nullptr;
}
