// Whether values survive a change of their type. Read next: load.cpp, the user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rosin/array.hpp>

namespace rosin {

/// The first value of x (real, on any device) that another type would not hold, as text; nothing where all are held. A
/// floating-point value may be rounded to another floating-point type, but not made infinite; else every value must
/// stay what it is: 1200 is no Int8, 0.5 no integer, 2 no Bool, and 2^24 + 1 no Float32.
std::optional<std::string> lost_value(const Array& x, DType type);
/// The same for `count` elements in memory.
std::optional<std::string> lost_value(const void* values, DType from, DType to, int64_t count);

}  // namespace rosin
