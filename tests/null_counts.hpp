// How often functions of the plug-in `null`, which computes nothing, were called.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <filesystem>

namespace rosin {

inline uint64_t null_count(const char* function) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void* const plugin = dlopen((folder / "rosin" / "librosin_null.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<uint64_t (*)(const char*)>(dlsym(plugin, "rosin_null_counts"))(function);
}

}  // namespace rosin
