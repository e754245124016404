// The values of an array on the host, for the library's own use.
#pragma once

#include <span>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/host_vector.hpp>

namespace rosin {

/// All elements, column-major, converted to T. Error (memory) where the host has no room for them.
template <class T> std::vector<T> host_values(const char* what, const Array& x) {
  std::vector<T> values = detail::host_vector<T>(what, x.count());
  x.copy_to(std::span<T>(values));
  return values;
}

}  // namespace rosin
