// See carrier.hpp.
#include "nccl/carrier.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "common/trouble.hpp"

namespace rosin::transport::nccl {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

const char* carrier_name() {
  if (is_set("ROSIN_LOCAL_FD")) return "local";
  return is_set("ROSIN_MASTER") ? "tcp" : "mpi";
}

/// The folder in which this transport lies, with a slash at its end.
std::string own_folder() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &self) == 0 || !self.dli_fname) return "";
  const std::string path = self.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

const rosin_comm_transport* loaded() {
  const std::string path = own_folder() + "librosin_comm_" + carrier_name() + ".so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Trouble{ROSIN_COMM_UNSUPPORTED, std::string("NCCL needs another transport: ") + dlerror()};
  const auto open = reinterpret_cast<rosin_comm_open_function>(dlsym(library, "rosin_comm_open"));
  const rosin_comm_transport* const functions = open ? open(ROSIN_COMM_ABI) : nullptr;
  if (!functions) throw Trouble{ROSIN_COMM_UNSUPPORTED, path + " is of another version of rosin"};
  return functions;
}

}  // namespace

Carrier::Carrier(double timeout) : functions_(loaded()) {
  good(functions_->join(timeout));
  place_.size = sizeof place_;
  good(functions_->world(&comm_));
  good(functions_->place(comm_, &place_));
}

void Carrier::good(rosin_comm_status status) const {
  if (status != ROSIN_COMM_OK) throw Trouble{status, functions_->error_text()};
}

void Carrier::run(const rosin_comm_collective& collective) { good(functions_->run(comm_, &collective)); }

void Carrier::check() {
  if (functions_->check) good(functions_->check(comm_));
}

void Carrier::gather(const void* mine, void* all, size_t bytes, const char* name, double timeout) {
  const rosin_comm_part part{mine, all, bytes};
  rosin_comm_collective c{};
  c.size = sizeof c;
  c.kind = ROSIN_COMM_ALLGATHER;
  c.type = ROSIN_COMM_UINT8;
  c.part_count = 1;
  c.parts = &part;
  c.name = name;
  c.timeout = timeout;
  run(c);
}

}  // namespace rosin::transport::nccl
