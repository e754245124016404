// What the program says of math modes, for those who evaluate. Read first: include/rosin/math_mode.hpp.
#pragma once

#include <rosin/math_mode.hpp>

namespace rosin {

/// The program's mode; `usual`: it says nothing.
MathMode program_math_mode() noexcept;

}  // namespace rosin
