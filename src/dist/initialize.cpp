// Who has joined: one group for each transport, from initialize() to the end of the process.
#include <rosin/distributed.hpp>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <rosin/device.hpp>
#include <rosin/error.hpp>

#include "base/environment.hpp"
#include "devices/device_choice.hpp"
#include "devices/preferences.hpp"
#include "dist/group.hpp"
#include "dist/transport.hpp"

namespace rosin::distributed {
namespace {

struct Groups {
  std::mutex lock;
  std::vector<std::unique_ptr<Group>> joined;

  Group* find(std::string_view transport) const {
    for (const auto& group : joined) {
      if (group->name() == transport) return group.get();
    }
    return nullptr;
  }
};

Groups& groups() {
  static Groups all;
  return all;
}

/// At the end of the process, before what transports keep in static objects is gone: they were loaded before this was
/// given to atexit.
void leave_all() { groups().joined.clear(); }

/// The transport that a type of back end stands for; "" is that of whatever started the process.
std::string_view resolved(std::string_view transport) {
  if (!transport.empty()) return transport;
  const Launcher started_by = launcher();
  if (started_by != Launcher::rosin && environment(Setting::master)) return TCPBackend::transport;
  return started_by == Launcher::mpi ? MPIBackend::transport : LocalBackend::transport;
}

std::string type_of(std::string_view transport) {
  if (transport.empty()) return "LaunchedBackend";
  std::string name(transport);
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name + "Backend";
}

/// Whose devices NCCL joins: those that the process takes anyway, if they are CUDA's or AMDGPU's, which RCCL joins;
/// else the first of these that has some; "" where none has.
std::string backend_of_nccl() {
  const std::string taken(chosen_gpu().backend());
  if (taken == "CUDA" || taken == "AMDGPU") return taken;
  return functional("CUDA") ? "CUDA" : functional("AMDGPU") ? "AMDGPU" : "";
}

/// Makes gpu_device() this rank's, among the devices of the back end that it takes anyway, or that the transport is
/// for.
void choose_gpu(const Group& group, const std::vector<int>& ids) {
  const bool is_for_some = group.name() == NCCLBackend::transport;
  const Device gpu = is_for_some ? Device() : chosen_gpu();
  if (!is_for_some && gpu.position() == 0) return;
  const std::string backend = is_for_some ? backend_of_nccl() : std::string(gpu.backend());
  if (ids.empty()) set_device_by_rank(backend, group.node_rank());
  else set_device(backend, ids[static_cast<size_t>(group.rank())]);
}

/// Before anything is joined.
void require_devices(std::string_view transport) {
  if (transport != NCCLBackend::transport || !backend_of_nccl().empty()) return;
  throw Error(ErrorKind::distributed,
              "initialize: NCCL joins processes that have a CUDA or AMDGPU device each; CUDA is not usable: " +
                  why_not("CUDA") + "; AMDGPU is not usable: " + why_not("AMDGPU") +
                  "; take distributed::MPIBackend, or initialize() alone");
}

}  // namespace

bool detail::initialized(std::string_view transport) {
  const std::lock_guard guard(groups().lock);
  return groups().find(resolved(transport)) != nullptr;
}

void detail::initialize(std::string_view transport, const InitializeOptions& options) {
  if (!(options.timeout >= 0) || std::isinf(options.timeout)) {
    throw Error(ErrorKind::argument, "initialize: the timeout must be a number of seconds, 0 or more; got " +
                                         std::to_string(options.timeout));
  }
  const std::string_view name = resolved(transport);
  const std::lock_guard guard(groups().lock);
  if (groups().find(name)) return;
  require_devices(name);
  auto group = std::make_unique<Group>(name, load_transport(name), options.timeout);
  if (!options.devices.empty() && options.devices.size() <= static_cast<size_t>(group->rank())) {
    throw Error(ErrorKind::argument, "initialize: devices must have an id for each of the " +
                                         std::to_string(group->ranks()) + " ranks; got " +
                                         std::to_string(options.devices.size()));
  }
  choose_gpu(*group, options.devices);
  groups().joined.push_back(std::move(group));
  std::atexit(leave_all);
}

Group* detail::group_of(std::string_view transport) {
  const std::lock_guard guard(groups().lock);
  if (Group* group = groups().find(resolved(transport))) return group;
  const std::string type = type_of(transport);
  throw Error(ErrorKind::distributed, "get_distributed_backend: " + type + " is not initialized; call distributed::" +
                                          "initialize<" + type + ">() first");
}

void set_mpi_gpu_aware(bool aware) { write_mpi_gpu_aware_preference(aware); }

}  // namespace rosin::distributed
