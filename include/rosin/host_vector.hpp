// Vectors on the host whose size follows from that of arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rosin/export.hpp>

namespace rosin {

namespace detail {

/// Error (memory): the host has no room for `count` elements of `size` bytes; says what is in use.
[[noreturn]] ROSIN_API void throw_out_of_memory(const char* what, int64_t count, size_t size);
/// A vector of zeros on the host. Error (memory) where there is no room for it.
template <class T> std::vector<T> host_vector(const char* what, int64_t count) {
  try {
    return std::vector<T>(static_cast<size_t>(count));
  } catch (...) {
    throw_out_of_memory(what, count, sizeof(T));
  }
}

}  // namespace detail

}  // namespace rosin
