// The bytes that compile() gives and load() takes: what launches need to know of each kernel, and the driver's binary
// (or what else it loads).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/backend.h>

#include "common/failure.hpp"

namespace rosin::plugin {

/// What the launch of a kernel needs to know of its code.
struct Signature {
  std::string name;
  uint32_t group = 1;
  uint32_t buffer_count = 0;
  std::vector<int32_t> parameters;  // rosin_scalar_type of each
  uint64_t shared_bytes = 0;        // of all shared arrays, each from a multiple of 16 bytes on
};
Signature signature_of(const rosin_kernel_code& code);

/// The kernel of that name among those of a module, which have a `signature`. Throws ROSIN_INVALID.
template <class Kernels> auto* kernel_named(Kernels& kernels, std::string_view name) {
  for (auto& kernel : kernels) {
    if (kernel.signature.name == name) return &kernel;
  }
  throw Failure{ROSIN_INVALID, "the module has no kernel " + std::string(name)};
}

struct ProgramBytes {
  std::string target;
  std::vector<Signature> kernels;
  std::string content;
};

uint64_t checksum(std::string_view bytes);  // FNV-1a

std::string pack(const ProgramBytes& program);
/// The same as memory that free() gives back.
void* packed(const ProgramBytes& program, uint64_t& count);
/// Throws ROSIN_INVALID for what pack() did not make.
ProgramBytes unpack(std::string_view bytes);

}  // namespace rosin::plugin
