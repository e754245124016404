// What stand-ins of the vendors' libraries share: their way to the driver's, and a log. Read first: library_work.hpp.
// Read next: cublaslt.cpp, cudnn.cpp.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "library_work.hpp"

namespace fake {

#ifdef FAKE_HIP
constexpr const char* driver_file = "libamdhip64.so.6";
#else
constexpr const char* driver_file = "libcuda.so.1";
#endif

/// The driver's stand-in beside this library, which is open already.
inline const LibraryWork& cuda() {
  static const LibraryWork* work = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&cuda), &self);
    const std::string path = (std::filesystem::path(self.dli_fname).parent_path() / driver_file).string();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* found = library ? dlsym(library, library_work_function) : nullptr;
    if (!found) std::abort();  // a test without its driver
    return reinterpret_cast<LibraryWorkFunction>(found)();
  }();
  return *work;
}

/// Calls as they are given, one a line, go to the file that FAKE_CUDA_PRODUCTS names.
inline void note(const std::string& line) {
  const char* path = std::getenv("FAKE_CUDA_PRODUCTS");
  if (!path || !*path) return;
  if (FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

}  // namespace fake
