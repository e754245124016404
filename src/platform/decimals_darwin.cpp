// decimals.hpp for libc++ without from_chars of its own: strtod in the locale C, less what it takes beyond that.
#include "platform/decimals.hpp"

#ifndef __cpp_lib_to_chars

#include <xlocale.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace rosin::platform {

std::from_chars_result read_decimal(const char* begin, const char* end, double& value) {
  std::string text(begin, end);  // strtod wants a zero at its end
  const size_t first = text.starts_with('-') ? 1 : 0;
  const char next = text.c_str()[first];
  if (next != '.' && !std::isalnum(static_cast<unsigned char>(next))) return {begin, std::errc::invalid_argument};
  const char after_zero = next == '0' ? text[first + 1] : '\0';
  if (after_zero == 'x' || after_zero == 'X') text.resize(first + 1);  // 0x1p3 is the number 0 and a rest
  char* stopped = nullptr;
  errno = 0;
  const double read = strtod_l(text.c_str(), &stopped, nullptr);
  const char* const after = begin + (stopped - text.c_str());
  if (after == begin) return {begin, std::errc::invalid_argument};
  if (errno == ERANGE) return {after, std::errc::result_out_of_range};
  value = read;
  return {after, {}};
}

}  // namespace rosin::platform

#endif
