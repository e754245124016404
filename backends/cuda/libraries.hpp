// Where NVIDIA's libraries are looked for, opened at run time; nothing is linked. Read next: cuda.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rosin::cuda {

/// A library that is open, or the reason why it is not: which names were tried, and where.
struct Library {
  void* handle = nullptr;
  std::string reason;

  /// The function of that name, or null.
  void* find(const char* name) const;
};

/// Opens the first of these file names that is found: in the folders of ROSIN_CUDA_LIBRARIES (absolute ones, separated
/// by colons), where the system's loader looks, in the CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), and among
/// the packages of Python (nvidia/*/lib).
Library open_library(const std::vector<std::string>& names);

/// The same for the driver's library, which belongs to the system: no toolkit has one that works.
Library open_driver_library(const std::vector<std::string>& names);

}  // namespace rosin::cuda
