// NCCL and CUDA's driver, or RCCL and HIP, opened at run time. Read first: functions.hpp. Read next: rocm.cpp,
// carrier.hpp.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "common/trouble.hpp"
#include "nccl/functions.hpp"

namespace rosin::transport::nccl {

struct Library {
  const char* name;     // "NCCL", "RCCL"
  const char* backend;  // whose devices it joins: "CUDA", "AMDGPU"
  Functions nccl;
  Driver driver;
  int version;
};

/// Those of this vendor's devices: libnccl, the file that ROSIN_NCCL_LIBRARY names, else libnccl.so.2 in the folders of
/// ROSIN_CUDA_LIBRARIES and where the system's loader looks; librccl.so.1 in the same way (rocm.cpp). Throws Trouble
/// (unsupported): one of them is not there, or is too old.
Library open_libraries(std::string_view backend);

/// CUDA's, or AMDGPU's where those are not there.
Library open_libraries();

// What both vendors' are opened with.

[[noreturn]] inline void refuse(const std::string& text) { throw Trouble{ROSIN_COMM_UNSUPPORTED, text}; }
template <class F> void find(void* library, F& function, const char* name, const char* what) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function) refuse(std::string(what) + " has no " + name + "; it is too old");
}
/// `what`: "NCCL", "RCCL".
Functions nccl_functions(void* library, const char* what);
/// With its version, which must do.
Library checked(Library library);
Library open_rocm();

/// "2.21.5"
std::string version_text(int version);

}  // namespace rosin::transport::nccl
