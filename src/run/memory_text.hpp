// Texts of memory that has run out.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/error.hpp>

namespace rosin {

/// "1.5 MiB"
inline std::string mebibytes(int64_t bytes) {
  const int64_t whole = bytes >> 20, tenths = (bytes & ((1 << 20) - 1)) * 10 >> 20;
  return std::to_string(whole) + "." + std::to_string(tenths) + " MiB";
}

inline constexpr int64_t unknown_bytes = -1;
/// The CPU has no room for so many bytes; the text says what is in use.
[[noreturn]] void throw_no_memory(const std::string& what, int64_t bytes);

}  // namespace rosin
