// RCCL and the HIP runtime, opened at run time: RCCL has NCCL's functions, and HIP tells the device of a stream.
// Read first: library.hpp.
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/trouble.hpp"
#include "driver/rocm.hpp"
#include "nccl/library.hpp"

namespace rosin::transport::nccl {
namespace {

struct Hip {
  int (*device_of)(Stream stream, int* device);
  int (*get_device)(int* device);
  int (*set_device)(int device);
};
Hip hip;

/// What was current before, of the calling thread.
std::vector<int>& before() {
  thread_local std::vector<int> all;
  return all;
}

// A device stands for its context: its number, and one more, as none is null.

int context_of(Stream stream, Context* context) {
  int device = 0;
  const int code = hip.device_of(stream, &device);
  *context = reinterpret_cast<Context>(static_cast<intptr_t>(device) + 1);
  return code;
}

int push(Context context) {
  int now = 0;
  if (const int code = hip.get_device(&now)) return code;
  if (const int code = hip.set_device(static_cast<int>(reinterpret_cast<intptr_t>(context) - 1))) return code;
  before().push_back(now);
  return 0;
}

int pop(Context*) {
  const int last = before().back();
  before().pop_back();
  return hip.set_device(last);
}

/// That which the process has already, where it has one: two would not know each other's streams.
void* open_hip() {
  for (const std::string& name : driver::hip_names()) {
    if (void* loaded = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  }
  const driver::Library library = driver::open_library(driver::rocm_places(), driver::hip_names());
  if (!library.handle) refuse("the HIP runtime is not installed (" + library.reason + ")");
  return library.handle;
}

void* open_rccl() {
  driver::Library library;
  if (const std::string named = driver::variable("ROSIN_RCCL_LIBRARY"); named.empty()) {
    library = driver::open_library(driver::rocm_places(), {"librccl.so.1"});
  } else {
    library.handle = dlopen(named.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* const said = library.handle ? nullptr : dlerror();
    library.reason = said ? said : named;
  }
  if (!library.handle) {
    refuse("RCCL is not found (" + library.reason + "); install it (ROCm's package rccl), or name its file in " +
           "ROSIN_RCCL_LIBRARY");
  }
  return library.handle;
}

}  // namespace

Library open_rocm() {
  void* const runtime = open_hip();
  find(runtime, hip.device_of, "hipStreamGetDevice", "the HIP runtime");
  find(runtime, hip.get_device, "hipGetDevice", "the HIP runtime");
  find(runtime, hip.set_device, "hipSetDevice", "the HIP runtime");
  return checked({"RCCL", "AMDGPU", nccl_functions(open_rccl(), "RCCL"), {context_of, push, pop}, 0});
}

}  // namespace rosin::transport::nccl
