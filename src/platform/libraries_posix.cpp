// libraries.hpp on POSIX.
#include "platform/libraries.hpp"

#include <dlfcn.h>

namespace rosin::platform {

const std::string_view library_suffix = ".so";

void* open_library(const std::string& path, std::string& reason) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char* error = dlerror();
  reason = error ? error : "cannot be loaded";
  return nullptr;
}

void* library_function(void* library, const char* name) { return dlsym(library, name); }

std::string file_of_this_library() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<void*>(&file_of_this_library), &info) != 0 && info.dli_fname;
  return found ? info.dli_fname : "";
}

}  // namespace rosin::platform
