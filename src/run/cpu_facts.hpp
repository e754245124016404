// What the machine says about itself.
#pragma once

#include <cstdint>
#include <string>

namespace rosin {

/// The processor's own name, or its architecture where it has none.
std::string cpu_name();
/// Bytes of memory that this process may use: the machine's, or its container's where that is less.
int64_t cpu_memory();

}  // namespace rosin
