// Names of operands' forms. Read after vendor.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/hash.hpp"

namespace rosin::engines {

/// Of what makes a form, and of all numbers that its bytes depend on beside the operand's.
inline uint64_t form_name(std::string_view engine, std::initializer_list<int64_t> numbers) {
  uint64_t name = engine.size();
  for (const char c : engine) name = mix(name, static_cast<unsigned char>(c));
  for (const int64_t n : numbers) name = mix(name, static_cast<uint64_t>(n));
  return name;
}

}  // namespace rosin::engines
