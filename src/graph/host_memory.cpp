// See host_memory.hpp.
#include "graph/host_memory.hpp"

#include <limits>

#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>

namespace rosin {

void (*refuse_host_memory)(const std::string& what, int64_t bytes) = nullptr;

void detail::throw_out_of_memory(const char* what, int64_t count, size_t size) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size), &bytes)) bytes = std::numeric_limits<int64_t>::max();
  if (refuse_host_memory) refuse_host_memory(what, bytes);
  throw Error(ErrorKind::memory, std::string(what) + ": out of memory on the CPU; requested " + std::to_string(bytes) +
                                     " bytes; drop arrays that are no longer needed");
}

}  // namespace rosin
