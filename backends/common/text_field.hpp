// Texts in the fields of rosin_device_info.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace rosin::plugin {

/// Puts a text into a field of fixed length, cut where it is longer, with a zero at its end.
template <size_t n> void put(char (&field)[n], std::string_view value) {
  const size_t count = std::min(value.size(), n - 1);
  std::memcpy(field, value.data(), count);
  field[count] = 0;
}

}  // namespace rosin::plugin
