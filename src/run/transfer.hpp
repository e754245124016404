// Copies between memory of the CPU and of devices, and between devices. Read first: graph/transfer.hpp,
// open_device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rosin/array.hpp>

#include "graph/memory.hpp"

namespace rosin {

/// At least one of the two is a device's; the source has its values. Error (memory, backend).
void copy_memory(Memory& target, Memory& source, size_t bytes);
/// Bytes of arrays copied between the host and devices since the start of the process.
struct CopiedBytes {
  int64_t to_devices = 0;
  int64_t from_devices = 0;
};
CopiedBytes copied_bytes() noexcept;
/// Counts what somebody else has copied.
void count_copied(const CopiedBytes& more) noexcept;
/// Names the memory of an array in messages about memory: its path in a model.
void label_memory(const Array& x, const std::string& path);

}  // namespace rosin
