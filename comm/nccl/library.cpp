// See library.hpp.
#include "nccl/library.hpp"

#include <unistd.h>

#include <cstdlib>

namespace rosin::transport::nccl {
namespace {

/// Nothing in a program that runs with more rights than its user has: what it opens is not the user's to say.
std::string_view variable(const char* name) {
#ifdef __GLIBC__
  const char* value = secure_getenv(name);
#else
  const char* value = issetugid() ? nullptr : std::getenv(name);
#endif
  return value ? value : "";
}

void* open_file(const std::string& path, std::string& reason) {
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* said = dlerror();
  reason = said ? said : path;
  return nullptr;
}

/// In the folders of ROSIN_CUDA_LIBRARIES, then where the system's loader looks; null with the reason.
void* open_named(const std::string& file, std::string& reason) {
  std::string_view folders = variable("ROSIN_CUDA_LIBRARIES");
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::string folder(folders.substr(0, end));
    folders.remove_prefix(std::min(end + 1, folders.size()));
    if (!folder.starts_with('/')) continue;
    if (void* handle = open_file(folder + "/" + file, reason)) return handle;
  }
  return open_file(file, reason);
}

void* open_nccl() {
  std::string reason;
  const std::string named(variable("ROSIN_NCCL_LIBRARY"));
  void* const handle = named.empty() ? open_named("libnccl.so.2", reason) : open_file(named, reason);
  if (!handle) {
    refuse("NCCL is not found (" + reason + "); install it (libnccl2, nvidia-nccl-cu12), or name its file in " +
           "ROSIN_NCCL_LIBRARY");
  }
  return handle;
}

Driver driver_functions() {
  std::string reason;
  void* const library = open_named("libcuda.so.1", reason);
  if (!library) refuse("the NVIDIA driver is not installed (" + reason + ")");
  Driver d{};
  find(library, d.stream_context, "cuStreamGetCtx", "the NVIDIA driver");
  find(library, d.push, "cuCtxPushCurrent_v2", "the NVIDIA driver");
  find(library, d.pop, "cuCtxPopCurrent_v2", "the NVIDIA driver");
  return d;
}

}  // namespace

std::string version_text(int version) {
  const int unit = version < 10000 ? 1000 : 10000;  // before 2.9 it was 2.8.4: 2804
  return std::to_string(version / unit) + "." + std::to_string(version % unit / 100) + "." +
         std::to_string(version % 100);
}

Functions nccl_functions(void* library, const char* what) {
  Functions f{};
  const auto get = [&](auto& function, const char* name) { find(library, function, name, what); };
  get(f.get_version, "ncclGetVersion");
  get(f.get_unique_id, "ncclGetUniqueId");
  get(f.comm_init_rank, "ncclCommInitRank");
  get(f.comm_destroy, "ncclCommDestroy");
  get(f.comm_abort, "ncclCommAbort");
  get(f.comm_get_async_error, "ncclCommGetAsyncError");
  get(f.get_error_string, "ncclGetErrorString");
  f.get_last_error = reinterpret_cast<decltype(f.get_last_error)>(dlsym(library, "ncclGetLastError"));
  get(f.group_start, "ncclGroupStart");
  get(f.group_end, "ncclGroupEnd");
  get(f.all_reduce, "ncclAllReduce");
  get(f.reduce, "ncclReduce");
  get(f.broadcast, "ncclBroadcast");
  get(f.all_gather, "ncclAllGather");
  get(f.reduce_scatter, "ncclReduceScatter");
  get(f.send, "ncclSend");
  get(f.receive, "ncclRecv");
  return f;
}

Library checked(Library library) {
  if (const int result = library.nccl.get_version(&library.version); result != success) {
    refuse(std::string(library.name) + " does not say its version: " + library.nccl.get_error_string(result));
  }
  if (library.version < oldest_version) {
    refuse(std::string(library.name) + " must be version " + version_text(oldest_version) + " or later; this is " +
           version_text(library.version));
  }
  return library;
}

Library open_libraries(std::string_view backend) {
  if (backend == "AMDGPU") return open_rocm();
  return checked({"NCCL", "CUDA", nccl_functions(open_nccl(), "NCCL"), driver_functions(), 0});
}

Library open_libraries() {
  try {
    return open_libraries("CUDA");
  } catch (const Trouble& of_cuda) {
    try {
      return open_libraries("AMDGPU");
    } catch (const Trouble& of_amd) {
      refuse(of_cuda.text + "; " + of_amd.text);
    }
  }
}

}  // namespace rosin::transport::nccl
