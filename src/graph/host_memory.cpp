// Host memory that runs out.
#include <rosin/host_vector.hpp>

#include <limits>
#include <string>

#include <rosin/error.hpp>

#include "graph/hooks.hpp"

namespace rosin {

void detail::throw_out_of_memory(const char* what, int64_t count, size_t size) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size), &bytes)) bytes = std::numeric_limits<int64_t>::max();
  if (hooks.allocate) hooks.allocate({.bytes = static_cast<size_t>(bytes), .what = what});
  throw Error(ErrorKind::memory, std::string(what) + ": out of memory on the CPU; requested " + std::to_string(bytes) +
                                     " bytes; drop arrays that are no longer needed");
}

}  // namespace rosin
