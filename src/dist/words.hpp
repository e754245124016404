// Arrays in the lists that ranks agree on (require_same in group.hpp): as words of a hash, and as words of a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rosin/array.hpp>

namespace rosin::distributed {

uint64_t hash_of(std::string_view text);
/// Of type and shape.
uint64_t hash_of(const Array& x);
/// Of the bits of an array of the CPU, which is evaluated.
uint64_t hash_of_elements(const Array& host);
/// "\"weight\" (4, 3) Float32".
std::string described(std::string_view name, const Array& x);

}  // namespace rosin::distributed
