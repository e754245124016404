// Floating-point numbers of texts.
#pragma once

#include <charconv>

namespace rosin::platform {

/// std::from_chars for a double, which libc++ has since its version 20 alone.
#ifdef __cpp_lib_to_chars
inline std::from_chars_result read_decimal(const char* begin, const char* end, double& value) {
  return std::from_chars(begin, end, value);
}
#else
std::from_chars_result read_decimal(const char* begin, const char* end, double& value);
#endif

}  // namespace rosin::platform
