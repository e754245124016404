// What the system says of its processors and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rosin::platform {

/// The name that the maker gave the processor, else that of its architecture.
std::string processor_name();

/// Threads that this process may run at once: the machine's, less what affinity and the limit of a container take; at
/// least 1.
int available_threads();

/// Bytes of the processor's last cache, which its cores may share; 0 where the system does not say.
int64_t last_cache_bytes();

/// Bytes of memory that this process may use: the machine's, or its container's where that is less.
int64_t memory_bytes();

/// Asks the system for large pages where memory that nobody has touched yet holds whole ones: it gives them one by one,
/// at the first touch. Where it has none, all stays as it is.
void prefer_large_pages(void* memory, size_t bytes) noexcept;

}  // namespace rosin::platform
