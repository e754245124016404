// Numbers for people to read, the same under every locale. Read next: progress.cpp and curve_svg.cpp, which use it.
#pragma once

#include <cstdint>
#include <string>

namespace rosin {

/// `value` with `digits` digits after the point; very large values with an exponent; `nan`, `inf`, `-inf`.
std::string fixed_text(double value, int digits);

/// A loss: four digits after the point, fewer for large values, an exponent where the digits would say nothing.
std::string loss_text(double value);

/// A duration as `m:ss` or `h:mm:ss`; `-` when it is unknown (negative or no number).
std::string duration_text(double seconds);

}  // namespace rosin
