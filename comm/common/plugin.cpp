// The table of functions of a transport. Read first: ranks.hpp.
#include "common/describe.hpp"
#include "common/ranks.hpp"
#include "common/trouble.hpp"

/// The communicator of all processes, the only one.
struct rosin_comm {
  std::unique_ptr<rosin::transport::Ranks> ranks;
  std::string version;
};

namespace rosin::transport {

void Ranks::require_devices(std::string_view) const {
  throw Trouble{ROSIN_COMM_UNSUPPORTED, "this transport takes no memory of devices"};
}

void* Ranks::common(uint64_t, double) {
  throw Trouble{ROSIN_COMM_UNSUPPORTED, "the ranks of this transport have no memory in common"};
}

namespace {

rosin_comm_transport& table();

std::unique_ptr<rosin_comm>& joined() {
  static auto& all = *new std::unique_ptr<rosin_comm>;  // never destroyed: a thread may wait in it at exit
  return all;
}

rosin_comm_status join(double timeout) {
  return guarded([&] {
    if (joined()) throw Trouble{ROSIN_COMM_INVALID, "this process has joined already"};
    auto ranks = join_ranks(timeout);
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
    Ranks& ranks = *comm->ranks;
    ranks.run(checked(collective, here.rank, here.ranks, ranks.way_of_devices(), ranks.memory_in_common()));
  });
}

void abort(rosin_comm* comm, const char* why) { comm->ranks->abort(why); }

int32_t takes_devices(rosin_comm* comm, const char* backend) {
  const rosin_comm_status status = guarded([&] { comm->ranks->require_devices(backend ? backend : ""); });
  return status == ROSIN_COMM_OK ? comm->ranks->way_of_devices() : ROSIN_COMM_NO_DEVICES;
}

rosin_comm_status check(rosin_comm* comm) {
  return guarded([&] { comm->ranks->check(); });
}

rosin_comm_status common(rosin_comm* comm, uint64_t bytes, double timeout, void** out) {
  return guarded([&] {
    if (!out) throw Trouble{ROSIN_COMM_INVALID, "there is no room for the address"};
    if (!(timeout >= 0)) throw Trouble{ROSIN_COMM_INVALID, "the timeout is not a number of seconds"};
    *out = comm->ranks->common(bytes, timeout);
  });
}

rosin_comm_transport& table() {
  static rosin_comm_transport all = {.size = sizeof(rosin_comm_transport),
                                     .abi = ROSIN_COMM_ABI,
                                     .name = transport_name,
                                     .version = ROSIN_VERSION,
                                     .error_text = error_text,
                                     .join = join,
                                     .world = world,
                                     .leave = leave,
                                     .place = place,
                                     .run = run,
                                     .abort = abort,
                                     .takes_devices = takes_devices,
                                     .check = check,
                                     .common = common};
  return all;
}

}  // namespace
}  // namespace rosin::transport

extern "C" __attribute__((visibility("default"))) const rosin_comm_transport* rosin_comm_open(uint32_t abi) {
  return abi == ROSIN_COMM_ABI ? &rosin::transport::table() : nullptr;
}
