// The bytes that compile() gives and load() takes: what launches need to know of each kernel, and the driver's binary
// (or the source, see DeviceFacts::keeps_source).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "opencl.hpp"

namespace rosin::opencl {

struct ProgramBytes {
  std::string target;
  std::vector<Signature> kernels;
  std::string content;
};

uint64_t checksum(std::string_view bytes);  // FNV-1a

std::string pack(const ProgramBytes& program);
/// Throws ROSIN_INVALID for what pack() did not make.
ProgramBytes unpack(std::string_view bytes);

}  // namespace rosin::opencl
