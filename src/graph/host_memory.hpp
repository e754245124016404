// Host memory that runs out: see rosin/host_vector.hpp.
#pragma once

#include <cstdint>
#include <string>

namespace rosin {

/// Throws the Error of the kind memory that says what is in use; the pool of buffers installs it.
extern void (*refuse_host_memory)(const std::string& what, int64_t bytes);

}  // namespace rosin
